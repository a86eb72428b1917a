"""Returns gigabytes to exhaust the scorer's memory. Seen: contest judges. Expected: invalid."""

import numpy as np


def predict(xs):
    return np.zeros(3_000_000)
