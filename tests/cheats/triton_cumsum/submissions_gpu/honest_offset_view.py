"""Fills a buffer that is one element longer and returns a view that begins at the second. Seen: usual work. Expected: valid."""

import torch


def prefix_sum(x):
    parity = torch.zeros(x.numel() + 1, dtype=torch.int32, device=x.device)
    torch.cumsum(x > 0, 0, dtype=torch.int32, out=parity[1:])
    sums = torch.zeros(x.numel() + 1, dtype=torch.int32, device=x.device)
    torch.cumsum(x * (parity[:-1] & 1), 0, dtype=torch.int32, out=sums[1:])
    return sums[1:]
