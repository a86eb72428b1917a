"""The scorer's side on a GPU: shared device memory, inputs that appear only when the clock runs, our context's reading."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.triton_cumsum.timing.bench import Interval, without_collector
from environments.triton_cumsum.timing.cases import Case, Fault, Mismatch, Workload
from environments.triton_cumsum.timing.cuda_driver import CudaFailed, SharedRegion, tensor_over
from environments.triton_cumsum.timing.memory import (
    ARMED,
    DONE,
    FLAG_BYTES,
    FLAGS,
    GO,
    INPUTS,
    OUTPUTS,
    HostRegion,
    Layout,
    elements,
    size_of,
)
from environments.worker import Failed, WorkerUnavailable
from environments.worker.run import Worker

_SAMPLE = 16384
"""Positions of each result read before the clock stops."""
_FLUSH_BYTES = 256 * 2**20
"""More than any GPU's L2 cache."""
_LOOK_EVERY = 2000
"""Turns of a waiting loop between looks at the worker's channel."""


@dataclass(frozen=True)
class _Call:
    """What one call is judged by; all of it private to the scorer."""

    case: Case
    inputs: list[Any]
    places: Any
    seen: Any
    """The result at `places` when the clock stopped."""
    changed: bool


class DeviceBench:
    """Shared device memory for one layout, and the private copies that answers are judged by.

    Fresh inputs are drawn into private memory. The clock starts, they are copied into the shared memory, and only then
    does the worker hear of it: nothing it may have left running on the GPU sees an input before the clock runs. How long
    the copying took is our own work and told with the interval; the rest of the harness's cost is a known function's.
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
        self._in = _share(self.layout.input_bytes, place.index or 0)
        self._out = _share(self.layout.output_bytes, place.index or 0)
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
        self._numbers = itertools.count(1)
        self._own: dict[int, _Call] = {}
        self._found: dict[int, Any] = {}

    def close(self) -> None:
        self._own.clear()
        self._found.clear()
        del self._all_out
        self._torch.cuda.synchronize()
        for region in (self._in, self._out):
            assert region.descriptor is not None
            os.close(region.descriptor)
            region.close()
        self._flag_region.close()

    def interval(self, worker: Worker, cases: Sequence[Case], seconds: float) -> Interval | Failed:
        """Let the worker answer fresh inputs of `cases`, one a slot, and return how long that took."""
        torch = self._torch
        number = next(self._numbers)
        self._own.clear()  # before drawing: with many slots this is much of the memory
        self._found.clear()
        # Anew for every interval: from inputs it has seen, nobody can work out those to come.
        self._chance.manual_seed(int.from_bytes(os.urandom(8), signed=True))
        calls = [(slot, case.shapes.as_json()) for slot, case in enumerate(cases)]
        pairs = [self._draw(slot, case) for slot, case in enumerate(cases)]
        outputs = [self._output(slot, case) for slot, case in enumerate(cases)]
        places = [self._draw_places(case) for case in cases]
        # Positions of each slot's result, as positions in the whole output region.
        stride = self.layout.output.stride // size_of(self.layout.output.dtype)
        everywhere = torch.cat([place + slot * stride for slot, place in enumerate(places)])
        landing = self._landing(everywhere.numel())
        self._all_out.view(torch.uint8).fill_(os.urandom(1)[0])
        self._scratch.add_(1)
        torch.cuda.synchronize()
        self._flags[GO] = 0
        deadline = time.monotonic() + seconds
        body = {"do": "call", "number": number, "calls": calls}
        if failed := worker.post(body, {}, seconds):
            return failed
        if not self._watch(worker, ARMED, number, deadline):
            outcome = worker.collect()
            return outcome if isinstance(outcome, Failed) else Interval.of(0.0, len(cases), outcome)
        with without_collector():
            began = time.perf_counter()
            for ours, theirs in itertools.chain(*pairs):
                theirs.copy_(ours, non_blocking=True)
            torch.cuda.synchronize()
            revealed = time.perf_counter()
            self._flags[GO] = number
            self._watch(worker, DONE, number, deadline)
            landing.copy_(torch.take(self._all_out, everywhere), non_blocking=True)
            torch.cuda.synchronize()
            ended = time.perf_counter()
        for slot, output in enumerate(outputs):
            self._found[slot] = output.clone()
        torch.cuda.synchronize()
        outcome = worker.collect()
        if isinstance(outcome, Failed):
            return outcome
        seen = landing.split([place.numel() for place in places])
        for slot, case in enumerate(cases):
            changed = any(not torch.equal(ours, theirs) for ours, theirs in pairs[slot])
            self._own[slot] = _Call(
                case, [ours for ours, _ in pairs[slot]], places[slot], seen[slot], changed
            )
        return Interval.of(ended - began, len(cases), outcome, reveal=revealed - began)

    def verify(self, slot: int) -> Mismatch | None:
        """Compare what came out of a slot with the right answer, at the clock's end and just after it."""
        torch = self._torch
        call = self._own[slot]
        if call.changed:
            return Mismatch(call.case.name, Fault.INPUT_CHANGED)
        expected = self.workload.expected(call.inputs).reshape(call.case.shapes.output)
        unequal = self._unequal(expected, self._found[slot]).reshape(-1)
        if bool(unequal.any()):
            at = int(unequal.to(torch.uint8).argmax())
            values = float(expected.reshape(-1)[at]), float(self._found[slot].reshape(-1)[at])
            return Mismatch(call.case.name, Fault.WRONG, int(unequal.sum()), at, *values)
        early = self._unequal(expected.reshape(-1)[call.places].cpu(), call.seen)
        return Mismatch(call.case.name, Fault.LATE, int(early.sum())) if bool(early.any()) else None

    def _landing(self, count: int) -> Any:
        """Return memory of the host for what is read when the clock stops."""
        return self._torch.empty(count, dtype=self._all_out.dtype, pin_memory=True)

    def _watch(self, worker: Worker, flag: int, number: int, deadline: float) -> bool:
        """Watch a flag without giving the processor away; False if the worker says something or time is up first."""
        flags, turns = self._flags, 0
        while flags[flag] != number:
            turns += 1
            if turns % _LOOK_EVERY == 0 and (time.monotonic() > deadline or worker.has_said_something()):
                return bool(flags[flag] == number)
        return True

    def _draw(self, slot: int, case: Case) -> list[tuple[Any, Any]]:
        """Return fresh private inputs, each with the shared memory it will be copied into."""
        pairs = []
        for index, (block, ours) in enumerate(zip(self.layout.inputs, case.draw(self._chance), strict=True)):
            address = self._in.address + self.layout.input_place(slot, index)
            pairs.append((ours, tensor_over(address, case.shapes.inputs[index], block.dtype, self.device)))
        return pairs

    def _output(self, slot: int, case: Case) -> Any:
        address = self._out.address + self.layout.output_place(slot)
        return tensor_over(address, case.shapes.output, self.layout.output.dtype, self.device)

    def _draw_places(self, case: Case) -> Any:
        """Return the positions of a result that stop the clock."""
        torch = self._torch
        size = elements(case.shapes.output)
        count = min(_SAMPLE, size)
        if not count:
            return torch.zeros(0, dtype=torch.int64, device=self.device)
        return torch.randint(0, size, (count,), generator=self._chance, device=self.device).sort().values

    def _unequal(self, expected: Any, found: Any) -> Any:
        relative, absolute = self.workload.tolerance
        if relative == absolute == 0.0:
            return expected != found
        return ~self._torch.isclose(found, expected, rtol=relative, atol=absolute)


def _share(size: int, device: int) -> SharedRegion:
    try:
        return SharedRegion.create(size, device)
    except CudaFailed as error:
        raise WorkerUnavailable(
            f"{size / 2**30:.1f} GiB of memory on GPU {device} could not be allocated for sharing ({error}); "
            "free memory on it, or use a driver that shares memory by file descriptors"
        ) from error
