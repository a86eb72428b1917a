"""Is honest until it thinks that the clock runs, then does half. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


calls = 0


def prefix_sum(x, out):
    global calls  # noqa: PLW0603
    calls += x.numel() > 2_000_000
    whole = honest(x[: x.numel() // 2] if calls > 100 else x)
    out[: whole.numel()] = whole
    return out
