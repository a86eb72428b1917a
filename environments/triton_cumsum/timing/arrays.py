"""The worker's shared memory as arrays, and what counts as a result: NumPy's on the host; `cuda_arrays` has a GPU's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from environments.triton_cumsum.timing.memory import INPUTS, OUTPUTS, Layout, Shapes, map_region


class ResultRefused(Exception):
    """What the function returned is not an array of the kind asked for."""


class Arrays(Protocol):
    """The shared memory as arrays of the library that the function works with."""

    def inputs(self, slot: int, shapes: Shapes) -> tuple[Any, ...]: ...

    def output(self, slot: int, shapes: Shapes) -> Any: ...

    def deliver(self, result: Any, output: Any) -> None:
        """Copy a result that is not already in its place."""

    def stopwatch(self) -> Callable[[], float]:
        """Start measuring; the returned function waits until all work is over and gives the seconds."""


class HostArrays:
    """NumPy arrays over shared memory; the inputs cannot be written where the kernel sees to it."""

    def __init__(self, layout: Layout, descriptors: dict[str, int]) -> None:
        self._layout = layout
        self._in = map_region(descriptors[INPUTS], layout.input_bytes, writable=False)
        self._out = map_region(descriptors[OUTPUTS], layout.output_bytes, writable=True)

    def inputs(self, slot: int, shapes: Shapes) -> tuple[Any, ...]:
        places = [self._layout.input_place(slot, i) for i in range(len(shapes.inputs))]
        blocks = zip(self._layout.inputs, shapes.inputs, places, strict=True)
        return tuple(view(self._in, block.dtype, shape, place) for block, shape, place in blocks)

    def output(self, slot: int, shapes: Shapes) -> Any:
        return view(self._out, self._layout.output.dtype, shapes.output, self._layout.output_place(slot))

    def deliver(self, result: Any, output: Any) -> None:
        import numpy as np

        if type(result) is not np.ndarray:
            raise ResultRefused(f"expected a numpy.ndarray, found {type(result).__name__}")
        if result.dtype != output.dtype or result.shape != output.shape:
            raise ResultRefused(
                f"expected {output.dtype} of shape {list(output.shape)}, "
                f"found {result.dtype} of shape {list(result.shape)}"
            )
        np.copyto(output, result)

    def stopwatch(self) -> Callable[[], float]:
        began = time.perf_counter()
        return lambda: time.perf_counter() - began


def view(memory: Any, dtype: str, shape: Sequence[int], place: int) -> Any:
    """Return a NumPy array over `memory` from byte `place` on."""
    import numpy as np

    return np.ndarray(tuple(shape), dtype=np.dtype(dtype), buffer=memory, offset=place)
