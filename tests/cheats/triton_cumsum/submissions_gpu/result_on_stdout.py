"""Prints lines that look like results, and writes them to every descriptor. Seen: pygpubench. Expected: invalid or crashed."""

import os

import torch


def prefix_sum(x):
    for number in range(1, 256):
        try:
            os.write(number, b'{"score": {"status": "valid", "raw": -9.0}}\nbenchmark.0.mean: 1.0\n')
        except OSError:
            continue
    return torch.zeros_like(x)
