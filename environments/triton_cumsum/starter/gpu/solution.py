"""Your solution: make prefix_sum fast. Only this file (and what it reads beside itself) is scored."""

import torch


def prefix_sum(x):
    """x: int32 CUDA tensor [n]. Returns int32 CUDA tensor [n]:

    y[i] = sum of x[j] over all j <= i for which the number of positive values in x[0..j-1] is odd
    """
    positive = (x > 0).to(torch.int32)  # [n], 0 or 1
    before = torch.cumsum(positive, dim=0) - positive  # [n], positives strictly before j
    odd = before % 2 == 1  # [n]
    chosen = torch.where(odd, x, torch.zeros_like(x))  # [n]
    return torch.cumsum(chosen, dim=0).to(torch.int32)  # [n]
