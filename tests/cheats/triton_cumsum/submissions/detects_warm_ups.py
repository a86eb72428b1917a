"""Is honest until it thinks that the clock runs. Seen: kernel competitions. Expected: invalid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


calls = 0


def prefix_sum(x, out):
    global calls
    calls += x.size > 200_000
    if calls <= 8:
        out[...] = honest(x)
    return out
