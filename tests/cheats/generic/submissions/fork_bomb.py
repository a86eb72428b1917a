"""Forks without end. Seen: contest judges. Expected: harmless or crashed or timeout."""

import os
import time


def predict(xs):
    mother = os.getpid()
    for _ in range(1000):
        try:
            os.fork()
        except OSError:
            break
    if os.getpid() != mother:
        while True:
            time.sleep(1)
    return [14.0 for _ in xs]
