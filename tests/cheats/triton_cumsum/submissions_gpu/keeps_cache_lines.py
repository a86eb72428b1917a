"""Sets a part of the L2 cache aside for itself. Seen: kernel competitions. Expected: valid."""

import ctypes

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(6, ctypes.c_size_t(32 * 2**20))  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
kept = torch.zeros(8 * 2**20, dtype=torch.int32, device="cuda")


def prefix_sum(x):
    kept.add_(1)
    return honest(x)
