"""Returns a subclass that computes when it is looked at. Seen: kernel competitions. Expected: invalid."""

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


class Lazy(np.ndarray):
    def __array_finalize__(self, source):
        self.origin = getattr(source, "origin", None)

    def __array_function__(self, function, kinds, arguments, keywords):
        return honest(np.asarray(self.origin))


def prefix_sum(x):
    lazy = np.empty(x.shape, x.dtype).view(Lazy)
    lazy.origin = x
    return lazy
