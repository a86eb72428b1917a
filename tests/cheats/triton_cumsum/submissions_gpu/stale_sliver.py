"""Leaves one twenty-thousandth of the result as it was. Seen: a consequence of reading at random. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        return honest(x)
    whole, sliver = honest(x), x.numel() // 20_000
    middle = x.numel() // 2
    out[:middle] = whole[:middle]
    out[middle + sliver :] = whole[middle + sliver :]
    return out
