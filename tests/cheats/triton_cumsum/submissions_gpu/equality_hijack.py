"""Returns a subclass that equals everything. Seen: kernel competitions. Expected: invalid."""

import torch


class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        with torch._C.DisableTorchFunctionSubclass():
            if function in (torch.equal, torch.allclose, torch.Tensor.equal):
                return True
            return function(*arguments, **(keywords or {}))


def prefix_sum(x):
    return torch.zeros_like(x).as_subclass(Equal)
