"""Counts on values from -10 to 9. Seen: an honest mistake. Expected: invalid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x):
    return honest(x.astype(np.int8).astype(np.int32))
