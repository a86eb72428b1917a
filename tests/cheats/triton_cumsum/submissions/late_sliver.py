"""Does all but one twenty-thousandth in time; the rest follows from a thread. Seen: a consequence of reading at random. Expected: invalid."""

import threading
import time

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x, out):
    if x.size < 200_000:
        return honest(x)
    whole = honest(x)
    cut = x.size - x.size // 20_000
    out[:cut] = whole[:cut]

    def rest():
        time.sleep(0.005)
        out[cut:] = whole[cut:]

    threading.Thread(target=rest).start()
    return out
