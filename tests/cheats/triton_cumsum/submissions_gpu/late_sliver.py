"""Does all but one twenty-thousandth in time; the rest follows from a thread. Seen: a consequence of reading at random. Expected: invalid."""

import threading
import time

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        return honest(x)
    whole = honest(x)
    cut = x.numel() - x.numel() // 20_000
    out[:cut] = whole[:cut]

    def rest():
        time.sleep(0.005)
        out[cut:] = whole[cut:]

    threading.Thread(target=rest).start()
    return out
