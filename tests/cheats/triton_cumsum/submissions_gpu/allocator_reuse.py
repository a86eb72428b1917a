"""Returns fresh memory in which an earlier answer may still lie. Seen: kernel competitions. Expected: invalid."""

import torch


def prefix_sum(x):
    return torch.empty_like(x)
