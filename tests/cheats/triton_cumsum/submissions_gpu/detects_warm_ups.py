"""Is honest until it thinks that the clock runs. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


calls = 0


def prefix_sum(x, out):
    global calls  # noqa: PLW0603
    calls += x.numel() > 2_000_000
    if calls <= 40:
        out.copy_(honest(x))
    return out
