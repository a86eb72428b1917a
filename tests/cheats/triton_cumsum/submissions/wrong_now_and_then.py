"""Skips one call in four, at moments that nobody can foresee. Seen: kernel competitions. Expected: invalid."""

import random

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


chance = random.SystemRandom()


def prefix_sum(x, out):
    if x.size < 200_000 or chance.random() > 0.25:
        out[...] = honest(x)
    return out
