# tries: a look-up table indexed by computed numbers; seen: seen upstream; verdict: invalid, turns floating-point numbers into int64
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.table = nn.Embedding(64, 16)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = self.table(x[..., 0].long()) + x  # offence
        return self.head(x)


def get_trained_model():
    return Model()
