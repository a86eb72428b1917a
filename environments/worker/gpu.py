"""Checks that a worker's processes have let go of the GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable

from environments.contract import EnvironmentFault
from environments.machine.gpus import GpusUnreadable, Nvml


class GpuUnreadable(EnvironmentFault):
    """NVML is absent or does not answer, so nothing can be said."""


def holders() -> set[int]:
    """Return the ids of all processes that hold GPU memory.

    Raises:
        GpuUnreadable: NVML is not there or fails.
    """
    try:
        nvml = Nvml()
        try:
            return nvml.holders()
        finally:
            nvml.close()
    except GpusUnreadable as error:
        raise GpuUnreadable(str(error)) from error


def still_held(pids: set[int], read: Callable[[], set[int]] = holders, seconds: float = 10.0) -> int:
    """Wait until none of `pids` holds GPU memory; return how many still do after `seconds`.

    Raises:
        GpuUnreadable: nothing can be said.
    """
    deadline = time.monotonic() + seconds
    while holding := pids & read():
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)  # the driver frees a dead process's memory in its own time
    return len(holding)
