"""Shared regions and their layout: where arrays lie, and what a worker cannot do to them."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.triton_cumsum.timing.arrays import view
from environments.triton_cumsum.timing.memory import Block, HostRegion, Layout, Shapes, map_region
from environments.triton_cumsum.timing.serve import takes_output

blocks = st.builds(Block, st.sampled_from(["uint8", "int32", "float64", "bfloat16"]), st.integers(0, 100_000))


@given(st.lists(blocks, min_size=1, max_size=3), blocks, st.integers(1, 5))
def test_no_two_arrays_overlap(inputs: list[Block], output: Block, slots: int) -> None:
    layout = Layout(tuple(inputs), output, slots)
    places = sorted(
        (layout.input_place(s, i), inputs[i].stride) for s in range(slots) for i in range(len(inputs))
    )
    ends = [place + size for place, size in places]
    assert all(end <= start for end, (start, _) in zip(ends[:-1], places[1:], strict=True))
    assert ends[-1] <= layout.input_bytes
    assert layout.output_place(slots - 1) + output.stride <= layout.output_bytes
    assert all(place % 4096 == 0 for place, _ in places)


@given(st.lists(blocks, min_size=1, max_size=3), blocks, st.integers(1, 5))
def test_a_layout_survives_the_way_to_the_worker(inputs: list[Block], output: Block, slots: int) -> None:
    layout = Layout(tuple(inputs), output, slots)
    assert Layout.from_json(layout.as_json()) == layout
    shapes = Shapes(((3, 4), (0,)), (5,))
    assert Shapes.from_json(shapes.as_json()) == shapes


def test_what_the_scorer_writes_is_seen_through_the_descriptor() -> None:
    region = HostRegion("test", 8192, read_only=True)
    view(region.memory, "int32", (4,), 4096)[...] = [1, 2, 3, 4]
    theirs = map_region(region.descriptor, 8192, writable=False)
    assert view(theirs, "int32", (4,), 4096).tolist() == [1, 2, 3, 4]
    region.close()


def test_an_input_region_cannot_be_written_through_its_descriptor() -> None:
    region = HostRegion("test", 4096, read_only=True)
    if not region.read_only:
        pytest.skip("this kernel has no F_SEAL_FUTURE_WRITE")
    with pytest.raises(PermissionError):
        map_region(region.descriptor, 4096, writable=True)
    with pytest.raises(PermissionError):
        os.write(region.descriptor, b"x")
    again = os.open(f"/proc/self/fd/{region.descriptor}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(again, 4096)
    os.close(again)
    region.memory[:1] = b"y"  # our own mapping is older than the seal
    region.close()


def test_a_region_cannot_be_cut_short() -> None:
    for read_only in (True, False):
        region = HostRegion("test", 4096, read_only=read_only)
        with pytest.raises(PermissionError):
            os.ftruncate(region.descriptor, 0)
        region.close()


def test_a_view_has_the_shape_asked_for() -> None:
    array = view(bytearray(64), "int16", (2, 3), 4)
    assert array.shape == (2, 3)
    assert array.dtype == np.int16


@pytest.mark.parametrize(
    ("function", "takes"),
    [(lambda x: x, False), (lambda x, out: out, True), (lambda x, *, out=None: out, True), (len, False)],
)
def test_a_function_is_given_a_place_for_its_result_if_it_names_one(function: object, takes: bool) -> None:
    assert takes_output(function) is takes  # type: ignore[arg-type]
