"""Maps the inherited descriptors again to write into the input. Seen: a consequence of shared memory. Expected: invalid."""

import ctypes
import mmap
import os

import numpy as np


def prefix_sum(x):
    page = x.ctypes.data & -4096
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(x.nbytes + 4096), 3)
    for name in os.listdir("/proc/self/fd"):
        for how in (int(name), f"/proc/self/fd/{name}"):
            try:
                number = how if isinstance(how, int) else os.open(how, os.O_RDWR)
                size = os.fstat(number).st_size
                if size < x.nbytes or not x.nbytes:
                    continue
                with mmap.mmap(number, size) as memory:
                    memory[: x.nbytes] = bytes(x.nbytes)
                os.pwrite(number, bytes(x.nbytes), 0)
            except (OSError, ValueError):
                continue
    return np.zeros_like(x)
