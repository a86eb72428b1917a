"""The worker's side of timing: maps the shared memory, and calls the function when the scorer says so.

Runs in the sandbox, in one process with the submission, so nothing it reports is believed: not its clock, not its word
that the work is done. It is here to be fair to honest submissions and to put their mistakes into words.
"""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

from environments.triton_cumsum.timing.arrays import Arrays, HostArrays, ResultRefused
from environments.triton_cumsum.timing.memory import ARMED, DONE, FLAGS, GO, Layout, Shapes, map_region

_ARMED_SECONDS = 30.0
"""How long to watch for the scorer's start before giving up."""

Function = Callable[..., Any]


class Server:
    """Answers a timing bench's requests: `open` and `load` once, then `call` as often as it likes."""

    def __init__(self, load: Callable[[Any], Function]) -> None:
        """`load(request)` imports the participant's file and returns the function to be called."""
        self._load = load
        self._function: Function = _nothing
        self._takes_output = False
        self._arrays: Arrays | None = None
        self._flags: memoryview | None = None

    def answer(self, request: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
        match request.body["do"]:
            case "open":
                self._open(request)
                return {}, {}
            case "load":
                self._function = self._load(request)
                self._takes_output = takes_output(self._function)
                return {}, {}
        try:
            return self._call(request.body), {}
        except ResultRefused as refused:
            return {"refused": str(refused)}, {}

    def _open(self, request: Any) -> None:
        """Map the memory; nothing of the participant's runs yet."""
        layout = Layout.from_json(request.body["layout"])
        if request.body["device"] == "cpu":
            self._arrays = HostArrays(layout, request.descriptors)
        else:
            from environments.triton_cumsum.timing.cuda_arrays import DeviceArrays

            self._arrays = DeviceArrays(layout, request.descriptors, request.body["device"])
            self._flags = memoryview(map_region(request.descriptors[FLAGS], 4096, writable=True)).cast("I")

    def _call(self, body: dict[str, Any]) -> dict[str, Any]:
        assert self._arrays is not None
        calls = []
        for slot, described in body["calls"]:
            shapes = Shapes.from_json(described)
            calls.append((self._arrays.inputs(slot, shapes), self._arrays.output(slot, shapes)))
        if self._flags is not None and not self._wait_for_start(body["number"]):
            return {"late": True}
        seconds = self._run(calls)
        if self._flags is not None:
            self._flags[DONE] = body["number"]
        return {"seconds": seconds}

    def _run(self, calls: Sequence[tuple[tuple[Any, ...], Any]]) -> float:
        arrays, function = self._arrays, self._function
        assert arrays is not None
        gc.disable()  # a collection in the midst of a call is nobody's doing
        try:
            stop = arrays.stopwatch()
            for inputs, output in calls:
                result = function(*inputs, out=output) if self._takes_output else function(*inputs)
                if result is not output:
                    arrays.deliver(result, output)
            return stop()
        finally:
            gc.enable()

    def _wait_for_start(self, number: int) -> bool:
        """Say that everything is ready, and watch for the start without giving the processor away."""
        flags = self._flags
        assert flags is not None
        flags[ARMED] = number
        end = time.monotonic() + _ARMED_SECONDS
        while flags[GO] != number:
            if time.monotonic() > end:
                return False
        return True


def takes_output(function: Function) -> bool:
    """Whether the function has a parameter named `out`, for the array that its result goes into."""
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _nothing(*_arguments: Any) -> Any:
    raise RuntimeError("no function was loaded")
