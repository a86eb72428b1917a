"""The scorer's side on the host: NumPy arrays in shared memory, a frozen worker while inputs are written, our clock."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from environments.triton_cumsum.timing.arrays import view
from environments.triton_cumsum.timing.bench import Interval, without_collector
from environments.triton_cumsum.timing.cases import Case, Fault, Mismatch, Workload
from environments.triton_cumsum.timing.memory import INPUTS, OUTPUTS, HostRegion, Layout, elements
from environments.worker import Failed
from environments.worker.run import Worker

if TYPE_CHECKING:
    import numpy as np

_SAMPLE = 16384
"""Positions read before the clock stops: one in 20,000 left undone escapes 20 calls once in ten million."""
_CACHE_BYTES = 64 * 2**20


class HostBench:
    """Shared memory for one layout, and the private copies that answers are judged by."""

    device = "cpu"

    def __init__(self, workload: Workload, slots: int) -> None:
        import numpy as np

        self.workload = workload
        self.layout = Layout(workload.inputs, workload.output, slots)
        self._in = HostRegion("timing-inputs", self.layout.input_bytes, read_only=True)
        self._out = HostRegion("timing-outputs", self.layout.output_bytes, read_only=False)
        self.descriptors = {INPUTS: self._in.descriptor, OUTPUTS: self._out.descriptor}
        self._chance = np.random.Generator(np.random.SFC64())
        self._numbers = itertools.count(1)
        self._own: dict[int, tuple[Case, list[Any]]] = {}
        self._sampled: dict[int, tuple[Any, Any]] = {}
        self._found: dict[int, Any] = {}
        self._scratch = np.zeros(_CACHE_BYTES, dtype=np.uint8)

    def close(self) -> None:
        self._in.close()
        self._out.close()

    def interval(self, worker: Worker, cases: Sequence[Case], seconds: float) -> Interval | Failed:
        """Let the worker answer fresh inputs of `cases`, one a slot, and return how long that took."""
        import numpy as np

        number = next(self._numbers)
        self._chance = np.random.Generator(np.random.SFC64())
        calls = [(slot, case.shapes.as_json()) for slot, case in enumerate(cases)]
        body = {"do": "call", "number": number, "calls": calls}
        if failed := worker.freeze():
            return failed
        for slot, case in enumerate(cases):
            self._write(slot, case)
        places = [self._draw_places(slot, case) for slot, case in enumerate(cases)]
        self._scratch += 1
        if failed := worker.stayed_frozen():
            return failed
        with without_collector():
            began = time.perf_counter()
            worker.thaw()
            outcome = worker.ask(body, {}, seconds)
            seen = [output[place] for output, place in places]
            took = time.perf_counter() - began
        if isinstance(outcome, Failed):
            return outcome
        for slot, case in enumerate(cases):
            self._found[slot] = self._output(slot, case).copy()
            self._sampled[slot] = (places[slot][1], seen[slot])
        return Interval.of(took, len(cases), outcome)

    def verify(self, slot: int) -> Mismatch | None:
        """Compare what came out of a slot with the right answer, at the clock's end and just after it."""
        import numpy as np

        case, inputs = self._own[slot]
        if not self._in.read_only and self._inputs_changed(slot, case, inputs):
            return Mismatch(case.name, Fault.INPUT_CHANGED)
        expected = np.asarray(self.workload.expected(inputs)).reshape(case.shapes.output)
        found = self._found[slot]
        if self.workload.tolerance != (0.0, 0.0) or not np.array_equal(expected, found):
            unequal = self._unequal(expected, found).reshape(-1)
            if unequal.any():
                at = int(unequal.argmax())
                values = float(expected.reshape(-1)[at]), float(found.reshape(-1)[at])
                return Mismatch(case.name, Fault.WRONG, int(unequal.sum()), at, *values)
        places, seen = self._sampled[slot]
        early = self._unequal(expected.reshape(-1)[places], seen)
        return Mismatch(case.name, Fault.LATE, int(early.sum())) if early.any() else None

    def _inputs_changed(self, slot: int, case: Case, inputs: Sequence[Any]) -> bool:
        import numpy as np

        return any(
            not np.array_equal(array, self._input(slot, index, case)) for index, array in enumerate(inputs)
        )

    def _write(self, slot: int, case: Case) -> None:
        inputs = list(case.draw(self._chance))
        self._own[slot] = (case, inputs)
        for index, array in enumerate(inputs):
            self._input(slot, index, case)[...] = array
        whole = view(self._out.memory, "uint8", (self.layout.output.stride,), self.layout.output_place(slot))
        whole[...] = os.urandom(1)[0]

    def _input(self, slot: int, index: int, case: Case) -> Any:
        place = self.layout.input_place(slot, index)
        return view(self._in.memory, self.layout.inputs[index].dtype, case.shapes.inputs[index], place)

    def _output(self, slot: int, case: Case) -> np.ndarray[Any, Any]:
        place = self.layout.output_place(slot)
        array: np.ndarray[Any, Any] = view(
            self._out.memory, self.layout.output.dtype, case.shapes.output, place
        )
        return array

    def _draw_places(self, slot: int, case: Case) -> tuple[Any, Any]:
        """Return the slot's output, flat, and the positions of it that stop the clock."""
        import numpy as np

        size = elements(case.shapes.output)
        places = self._chance.integers(0, size, min(_SAMPLE, size)) if size else np.zeros(0, np.int64)
        # From either end: nobody can finish writing just ahead of the reading.
        upwards = os.urandom(1)[0] & 1
        return self._output(slot, case).reshape(-1), np.sort(places)[:: 1 if upwards else -1]

    def _unequal(self, expected: Any, found: Any) -> Any:
        import numpy as np

        relative, absolute = self.workload.tolerance
        if relative == absolute == 0.0:
            return expected != found
        return ~np.isclose(found, expected, rtol=relative, atol=absolute)
