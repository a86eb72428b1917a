"""What this machine is made of, as far as this process may use it."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Return the cores this process may use, by affinity; a container's quota counts."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = (_CGROUP / "cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            return max(1, min(count, round(int(quota) / int(period))))
    return count


def usable_memory() -> int:
    """Return the bytes of memory this process may use; a container's limit counts."""
    import psutil

    return min(psutil.virtual_memory().total, _cgroup_memory())


def cpu_name() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _cgroup_memory() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((_CGROUP / "memory.max").read_text(encoding="ascii"))
    return sys.maxsize
