"""Finds the channel, answers at once, and computes afterwards. Seen: pygpubench, carried further. Expected: invalid."""

import gc
import time

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


def prefix_sum(x, out):
    if x.size < 200_000:
        return honest(x)
    for thing in gc.get_objects():
        if type(thing).__name__ == "Channel" and hasattr(thing, "send"):
            from environments.worker.messages import Message

            thing.send(Message("answer", {"seconds": None}, {}))
    time.sleep(0.002)
    out[...] = honest(x)
    return out
