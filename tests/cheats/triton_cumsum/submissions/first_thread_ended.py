"""A process whose first thread has ended, so that it looks dead, watches the input. Seen: a consequence of freezing. Expected: invalid."""

import ctypes
import mmap
import os
import threading

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


shared = mmap.mmap(-1, 2**26)
state = {"started": False}


def watch(x):
    answer = np.ndarray(x.shape, np.int32, shared, 4096)
    while True:
        seen = bytes(x[:64])
        if shared[:256] != seen:
            answer[...] = honest(x)
            shared[:256] = bytes(x[:64])


def prefix_sum(x):
    if x.size < 280_000:
        return honest(x)
    if not state["started"]:
        state["started"] = True
        if os.fork() == 0:
            os.setsid()
            threading.Thread(target=watch, args=(x,)).start()
            ctypes.CDLL(None).syscall(60, 0)  # this thread alone ends
        return honest(x)
    if shared[:256] == bytes(x[:64]):
        return np.ndarray(x.shape, np.int32, shared, 4096).copy()
    return np.zeros_like(x)
