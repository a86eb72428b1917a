# tries: a custom autograd function; seen: listed by the task; verdict: invalid, `exp`
import torch
from torch import nn

class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()  # offence

    @staticmethod
    def backward(ctx, g):
        return g


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = Exp.apply(x)
        return self.head(x)


def get_trained_model():
    return Model()
