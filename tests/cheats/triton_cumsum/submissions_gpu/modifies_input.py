"""Makes the input all zeros, so that zeros are the answer. Seen: kernel competitions. Expected: invalid."""

import torch


def prefix_sum(x):
    x.zero_()
    return torch.zeros_like(x)
