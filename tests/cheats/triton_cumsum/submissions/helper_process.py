"""A process that outlives the call and writes the result later. Seen: pygpubench. Expected: invalid."""

import os
import time

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x, out):
    if x.size < 200_000:
        return honest(x)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.003)
            out[...] = honest(x)
            time.sleep(60)
        os._exit(0)
    return out
