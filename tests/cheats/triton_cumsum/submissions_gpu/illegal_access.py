"""Reads memory that is not its own on the GPU. Seen: an honest mistake. Expected: crashed."""

import torch


def prefix_sum(x):
    if x.numel() < 2_000_000:
        positive = (x > 0).to(torch.int32)
        odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
        return torch.cumsum(x * odd, 0, dtype=torch.int32)
    far = torch.take(x, torch.full((1024,), x.numel() * 1000, device=x.device))
    return torch.zeros_like(x) + far[0]
