"""Returns at once; a thread writes the result later. Seen: kernel competitions (work on another stream). Expected: invalid."""

import threading
import time

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def later(x, out):
    time.sleep(0.002)
    out[...] = honest(x)


def prefix_sum(x, out):
    if x.size < 200_000:
        return honest(x)
    threading.Thread(target=later, args=(x, out)).start()
    return out
