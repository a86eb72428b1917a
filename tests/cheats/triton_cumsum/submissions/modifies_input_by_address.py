"""The same through its address. Seen: kernel competitions. Expected: crashed."""

import ctypes

import numpy as np


def prefix_sum(x):
    if x.size:
        ctypes.memset(x.ctypes.data, 0, x.nbytes)
    return np.zeros_like(x)
