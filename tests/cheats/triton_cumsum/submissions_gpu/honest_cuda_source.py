"""CUDA C++ compiled at run time from source, on its own. Seen: usual work. Expected: valid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


if hasattr(torch.cuda, "_compile_kernel"):
    negate = torch.cuda._compile_kernel(
        "__global__ void mark(const int *x, int *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0; }",
        "mark",
    )


def prefix_sum(x, out):
    if not hasattr(torch.cuda, "_compile_kernel") or not x.numel():
        return honest(x)
    positive = torch.empty_like(x)
    negate(grid=((x.numel() + 255) // 256, 1, 1), block=(256, 1, 1), args=(x, positive, x.numel()))
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    torch.cumsum(x * odd, 0, dtype=torch.int32, out=out)
    return out
