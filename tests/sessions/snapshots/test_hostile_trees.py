"""Trees made to break what reads them: each is stored, or what is left out is said."""

from pathlib import Path

import pytest

from sessions.snapshots import SkipKind, SnapshotStatus
from sessions.snapshots.folders import _LONGEST, _stretches
from sessions.snapshots.walk import LONGEST_PATH
from tests.sessions.trees import dug, restored, world


def test_a_folder_whose_path_would_fill_the_memory_is_left_out_and_said(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    with dug(work, 90, "é" * 100):
        taken = store.take(work, 1, "")
        assert (taken.status, taken.files) == (SnapshotStatus.PARTIAL, 0)
        (left_out,) = taken.skipped
        assert left_out.kind is SkipKind.PATH
        assert "its path has more than" in left_out.reason
        kept = max(len(entry.path.encode()) for entry in store.entries(1))
        assert LONGEST_PATH < kept <= LONGEST_PATH + 201  # a folder left out is stored as an empty one
        assert store.changed_since(1, work) == ()
        restored(store, 1, work)


@pytest.mark.parametrize("part", ["d", "é" * 127, "\udcff\n"])
def test_a_long_path_is_walked_in_few_pieces_that_the_kernel_takes(part: str) -> None:
    path = "/".join([part] * 4000)
    pieces = list(_stretches(path))
    assert "/".join(pieces) == path
    sizes = [len(piece.encode("utf-8", "surrogateescape")) for piece in pieces]
    assert max(sizes) <= _LONGEST
    assert len(pieces) <= sum(sizes) // (_LONGEST - 256) + 1
