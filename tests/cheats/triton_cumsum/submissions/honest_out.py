"""Writes into the array it is given, in blocks. Seen: usual work. Expected: valid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x, out):
    parity, total = 0, 0
    with np.errstate(over="ignore"):
        for start in range(0, x.size, 65536):
            part = x[start : start + 65536]
            positive = part > 0
            odd = (np.cumsum(positive, dtype=np.int64) - positive + parity) & 1
            np.cumsum(part * odd.astype(np.int32), dtype=np.int32, out=out[start : start + 65536])
            out[start : start + 65536] += np.int32(total)
            parity ^= int(positive.sum()) & 1
            total = out[start + part.size - 1]
    return out
