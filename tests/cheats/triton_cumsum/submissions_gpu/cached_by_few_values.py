"""Keeps answers by the first and the last value. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


answers = {}


def prefix_sum(x):
    if x.numel() < 2_000_000:
        return honest(x)
    key = (x.numel(), int(x[0]), int(x[-1]))
    if key not in answers:
        answers.clear()
        for first in range(-10, 10):
            for last in range(-10, 10):
                answers[(x.numel(), first, last)] = None
        answers[key] = honest(x)
    if answers[key] is None:
        answers[key] = honest(x)
        answers["kept"] = key
    kept = answers.get("kept")
    return answers[kept] if kept else answers[key]
