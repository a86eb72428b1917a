"""Returns at once; a thread starts the work later. Seen: kernel competitions. Expected: invalid."""

import threading
import time

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


def later(x, out):
    time.sleep(0.02)
    out.copy_(honest(x))


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        return honest(x)
    threading.Thread(target=later, args=(x, out)).start()
    return out
