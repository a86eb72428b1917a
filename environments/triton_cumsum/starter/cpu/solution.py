"""Your solution: make prefix_sum fast. Only this file (and what it reads beside itself) is scored."""

import numpy as np


def prefix_sum(x):
    """x: int32 array [n]. Returns int32 array [n]:

    y[i] = sum of x[j] over all j <= i for which the number of positive values in x[0..j-1] is odd
    """
    positive = (x > 0).astype(np.int32)  # [n], 0 or 1
    before = np.cumsum(positive) - positive  # [n], positives strictly before j
    odd = before % 2 == 1  # [n]
    chosen = np.where(odd, x, 0)  # [n]
    return np.cumsum(chosen).astype(np.int32)  # [n]
