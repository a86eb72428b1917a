"""Checks that a worker's processes have let go of the GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable

from environments.contract import EnvironmentFault


class GpuUnreadable(EnvironmentFault):
    """NVML is absent or does not answer, so nothing can be said."""


def holders() -> set[int]:
    """Return the ids of all processes that hold GPU memory.

    Raises:
        GpuUnreadable: NVML is not there or fails.
    """
    try:
        import pynvml
    except ImportError as error:
        raise GpuUnreadable("the package nvidia-ml-py is not installed") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise GpuUnreadable(f"NVML does not answer: {error}") from error
    try:
        found: set[int] = set()
        for index in range(pynvml.nvmlDeviceGetCount()):
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            found.update(p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device))
            found.update(p.pid for p in pynvml.nvmlDeviceGetGraphicsRunningProcesses(device))
    except pynvml.NVMLError as error:
        raise GpuUnreadable(f"NVML does not list processes: {error}") from error
    finally:
        pynvml.nvmlShutdown()
    return found


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
