"""The scorer's side on a GPU: shared device memory, inputs that appear only when the clock runs, our context's reading."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from environments.kit.timing.bench import Interval
from environments.kit.timing.cases import Case, Mismatch, Workload
from environments.kit.timing.cuda_driver import SharedRegion, tensor_over
from environments.kit.timing.layout import (
    ARMED,
    DONE,
    FLAG_BYTES,
    FLAGS,
    GO,
    INPUTS,
    OUTPUTS,
    Layout,
    elements,
    size_of,
)
from environments.kit.timing.regions import HostRegion
from environments.worker import Failed, WorkerUnavailable
from environments.worker.run import Worker

_SAMPLE = 16384
"""Positions of each result read before the clock stops."""
_FLUSH_BYTES = 256 * 2**20
"""More than any GPU's L2 cache."""
_LOOK_EVERY = 2000
"""Turns of a waiting loop between looks at the worker's channel."""


class DeviceBench:
    """Shared device memory for one layout, and the private copies that answers are judged by.

    Fresh inputs are drawn into private memory. The clock starts, they are copied into the shared memory, and only then
    does the worker hear of it: nothing it may have left running on the GPU sees an input before the clock runs. What
    the copying costs is the same for the known function and comes out with the rest of the harness's cost.
    """

    def __init__(self, workload: Workload, slots: int, device: str) -> None:
        import torch

        self._torch = torch
        self.device = device
        self.workload = workload
        self.layout = Layout(workload.inputs, workload.output, slots)
        place = torch.device(device)
        if not torch.cuda.is_available():
            raise WorkerUnavailable("PyTorch sees no CUDA device; timing on a GPU needs one")
        torch.cuda.set_device(place)
        self._chance = torch.Generator(device=place)
        self._chance.manual_seed(int.from_bytes(os.urandom(7)))
        self._in = SharedRegion.create(self.layout.input_bytes, place.index or 0)
        self._out = SharedRegion.create(self.layout.output_bytes, place.index or 0)
        self._flag_region = HostRegion("timing-flags", FLAG_BYTES, read_only=False)
        self._flags = memoryview(self._flag_region.memory).cast("I")
        assert self._in.descriptor is not None
        assert self._out.descriptor is not None
        self.descriptors = {
            INPUTS: self._in.descriptor,
            OUTPUTS: self._out.descriptor,
            FLAGS: self._flag_region.descriptor,
        }
        self._scratch = torch.zeros(_FLUSH_BYTES, dtype=torch.uint8, device=place)
        output_elements = self.layout.output_bytes // size_of(workload.output.dtype)
        self._all_out = tensor_over(self._out.address, (output_elements,), workload.output.dtype, device)
        self._own: dict[int, tuple[Case, list[Any]]] = {}
        self._found: dict[int, Any] = {}
        self._after: dict[int, list[Any]] = {}
        self._sampled: dict[int, tuple[Any, Any]] = {}

    def close(self) -> None:
        self._own.clear()
        self._found.clear()
        self._after.clear()
        del self._all_out
        self._torch.cuda.synchronize()
        for region in (self._in, self._out):
            assert region.descriptor is not None
            os.close(region.descriptor)
            region.close()
        self._flag_region.close()

    def interval(
        self, worker: Worker, number: int, cases: Sequence[Case], seconds: float, *, timed: bool = False
    ) -> Interval | Failed:
        """Let the worker answer fresh inputs of `cases`, one a slot, and return how long that took."""
        torch = self._torch
        calls = [(slot, case.shapes.as_json()) for slot, case in enumerate(cases)]
        shared = [self._draw(slot, case) for slot, case in enumerate(cases)]
        places, indices = self._draw_places(cases)
        landing = torch.empty(indices.numel(), dtype=self._all_out.dtype, pin_memory=True)
        outputs = [self._output(slot, case) for slot, case in enumerate(cases)]
        self._all_out.view(torch.uint8).fill_(os.urandom(1)[0])
        self._scratch.add_(1)
        torch.cuda.synchronize()
        self._flags[GO] = 0
        deadline = time.monotonic() + seconds
        if failed := worker.post({"do": "call", "number": number, "calls": calls, "timed": timed}, {}, seconds):
            return failed
        started = self._watch(worker, ARMED, number, deadline)
        began = time.perf_counter()
        if started:
            for ours, theirs in shared:
                theirs.copy_(ours, non_blocking=True)
            torch.cuda.synchronize()
            self._flags[GO] = number
            self._watch(worker, DONE, number, deadline)
            landing.copy_(torch.take(self._all_out, indices), non_blocking=True)
            torch.cuda.synchronize()
        took = time.perf_counter() - began
        outcome = worker.collect()
        if isinstance(outcome, Failed):
            return outcome
        for slot, output in enumerate(outputs):
            self._found[slot] = output.clone()
            self._after[slot] = [theirs.clone() for _, theirs in shared[slot : slot + 1]]
            self._sampled[slot] = (places[slot], landing[slot * _SAMPLE :][: places[slot].numel()].clone())
        torch.cuda.synchronize()
        return Interval.of(took, len(cases), outcome)

    def verify(self, slot: int) -> Mismatch | None:
        """Compare what came out of a slot with the right answer, at the clock's end and just after it."""
        torch = self._torch
        case, inputs = self._own[slot]
        expected = self.workload.expected(inputs).reshape(case.shapes.output)
        found = self._found[slot]
        unequal = self._unequal(expected, found).reshape(-1)
        if bool(unequal.any()):
            at = int(unequal.to(torch.uint8).argmax())
            values = float(expected.reshape(-1)[at]), float(found.reshape(-1)[at])
            return Mismatch(case.name, at, *values, int(unequal.sum()))
        place, seen = self._sampled[slot]
        early = self._unequal(expected.reshape(-1)[place].cpu(), seen)
        if bool(early.any()):
            return Mismatch(case.name, int(place[early.to(torch.uint8).argmax()]), 0, 0, int(early.sum()), late=True)
        return None
