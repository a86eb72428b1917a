"""A quick NumPy solution that returns a new array. Seen: usual work. Expected: valid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


prefix_sum = honest
