"""Computes rightly, but in the memory of the input. Seen: kernel competitions (output aliasing). Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


def prefix_sum(x):
    if x.numel() < 2_000_000:
        return honest(x)
    return x.copy_(honest(x))
