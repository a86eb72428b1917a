"""Reads the memory of the processes around it. Seen: pygpubench. Expected: invalid."""

import os

import numpy as np


def prefix_sum(x):
    for pid in {os.getppid(), 1, *(int(n) for n in os.listdir("/proc") if n.isdigit())} - {os.getpid()}:
        try:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                for line in open(f"/proc/{pid}/maps"):
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    if end - start >= x.nbytes:
                        memory.seek(start)
                        return np.frombuffer(memory.read(x.nbytes), np.int32).reshape(x.shape)
        except (OSError, ValueError):
            continue
    return np.zeros_like(x)
