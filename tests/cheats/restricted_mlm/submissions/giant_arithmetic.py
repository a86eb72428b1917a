# tries: exhausting the scorer's time; seen: found by us; verdict: invalid, GFLOP for one row
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.wide = nn.Parameter(torch.zeros(16, 8000))
        self.back = nn.Parameter(torch.zeros(8000, 16))
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        for _ in range(500):
            x = x + x @ self.wide @ self.back
        return self.head(x)


def get_trained_model():
    return Model()
