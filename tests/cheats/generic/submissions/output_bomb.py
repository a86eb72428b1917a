"""Prints two hundred megabytes. Seen: contest judges. Expected: harmless or timeout."""

import sys


def predict(xs):
    block = "x" * 2**20
    for _ in range(200):
        sys.stdout.write(block)
    return [14.0 for _ in xs]
