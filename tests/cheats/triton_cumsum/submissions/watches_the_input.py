"""A thread watches the shared input and has the answer before the clock runs. Seen: a consequence of shared memory. Expected: invalid."""

import threading

import numpy as np


def honest(x):
    positive = x > 0
    odd = (np.cumsum(positive, dtype=np.uint8) - positive) & 1
    return np.cumsum(x * odd, dtype=np.int32)


ready = {}


def watch(x):
    while True:
        seen = bytes(x[:64])
        if ready.get("key") != seen:
            ready.update(answer=honest(x), key=bytes(x[:64]))


def prefix_sum(x):
    if x.size < 200_000:
        return honest(x)
    if "watcher" not in ready:
        ready["watcher"] = threading.Thread(target=watch, args=(x,), daemon=True)
        ready["watcher"].start()
        return honest(x)
    if ready.get("key") == bytes(x[:64]):
        return ready["answer"]
    return np.zeros_like(x)
