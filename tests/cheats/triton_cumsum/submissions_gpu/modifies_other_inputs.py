"""Makes the inputs of the calls to come all zeros. Seen: a consequence of several calls in one interval. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


seen = {}


def prefix_sum(x):
    answer = honest(x)
    if x.numel() > 2_000_000:
        for address, other in seen.items():
            if address > x.data_ptr():
                other.zero_()
        seen[x.data_ptr()] = x
    return answer
