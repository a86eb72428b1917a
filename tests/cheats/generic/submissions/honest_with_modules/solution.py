"""Splits its work over modules of its own, prints, and uses numpy and a process pool; no trick. Expected: better."""

from multiprocessing import Pool

import numpy as np
from parts.line import SLOPE
from shift import SHIFT


def one(x):
    return SLOPE * x + SHIFT


def predict(xs):
    print("predicting", len(xs))
    with Pool(2) as pool:
        return np.array(pool.map(one, xs))
