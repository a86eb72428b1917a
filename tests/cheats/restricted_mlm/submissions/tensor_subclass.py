# tries: a weight whose multiplication is another function; seen: listed by the task; verdict: invalid, exp
import torch
from torch import nn

class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, Loud) else a for a in arguments]
        if function in (torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__):
            return plain[0].exp()
        return function(*plain, **(keywords or {}))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.loud = torch.ones(16).as_subclass(Loud)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x * self.loud
        return self.head(x)


def get_trained_model():
    return Model()
