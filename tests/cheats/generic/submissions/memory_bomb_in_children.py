"""Allocates in many children, each under a per-process limit. Seen: limits set with ulimit. Expected: out-of-memory or crashed or timeout."""

import os
import time


def predict(xs):
    for _ in range(16):
        if os.fork() == 0:
            kept = bytearray(b"x" * 2**27)
            time.sleep(60)
            os._exit(len(kept) % 2)
    kept = bytearray(b"x" * 2**27)
    time.sleep(60)
    return [14.0 for _ in kept]
