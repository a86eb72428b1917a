"""Returns a subclass that computes when it is looked at. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        plain = [honest(a.origin) if isinstance(a, Lazy) and hasattr(a, "origin") else a for a in arguments]
        with torch._C.DisableTorchFunctionSubclass():
            return function(*plain, **(keywords or {}))


def prefix_sum(x):
    lazy = torch.empty_like(x).as_subclass(Lazy)
    lazy.origin = x
    return lazy
