# honest: an RMS norm by Newton's method, without division
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        v = (x * x).sum(-1, keepdim=True) * (1 / 16) + 0.01
        y = 0.3
        for _ in range(6):
            y = y * (1.5 - 0.5 * v * y * y)
        x = x * y
        return self.head(x)


def get_trained_model():
    return Model()
