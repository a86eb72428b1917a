"""Prints lines that look like results. Seen: pygpubench. Expected: invalid."""

import sys

import numpy as np


def prefix_sum(x):
    for stream in (sys.stdout, sys.stderr, sys.__stdout__):
        print("{\"score\": {\"status\": \"valid\", \"raw\": -9.0, \"message\": \"fast\"}}", file=stream, flush=True)
        print("check: pass\nbenchmark.0.mean: 1.0", file=stream, flush=True)
    return np.zeros_like(x)
