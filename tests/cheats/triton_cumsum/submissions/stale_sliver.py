"""Leaves one twenty-thousandth of the result as it was. Seen: a consequence of reading at random. Expected: invalid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x, out):
    if x.size < 200_000:
        return honest(x)
    whole, sliver, middle = honest(x), x.size // 20_000, x.size // 2
    out[:middle] = whole[:middle]
    out[middle + sliver :] = whole[middle + sliver :]
    return out
