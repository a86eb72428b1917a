"""Shared memory of the host: regions that the scorer makes, seals and writes, and that a worker maps."""

from __future__ import annotations

import fcntl
import mmap
import os

_FUTURE_WRITE = 0x10
"""F_SEAL_FUTURE_WRITE (Linux 5.1): mappings that exist may write, no later one can. Python names it from 3.13 on."""


class HostRegion:
    """A region of `size` bytes, mapped writable here; its descriptor is for a worker to inherit."""

    def __init__(self, name: str, size: int, *, read_only: bool) -> None:
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        # Without these two a worker could cut the region short, and our next read would be a SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self.read_only = read_only and self._forbid_writing()
        """Whether the kernel keeps the worker from writing; if not, changes must be looked for."""
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)

    def close(self) -> None:
        """Give the descriptor up; the mapping goes when the last array over it does."""
        os.close(self.descriptor)

    def _forbid_writing(self) -> bool:
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _FUTURE_WRITE)
        except OSError:
            return False
        return True


def map_region(descriptor: int, size: int, *, writable: bool) -> mmap.mmap:
    """Map an inherited region into this process, all its pages at once."""
    rights = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=rights)
