# tries: floor by adding and taking away a large number; seen: known of deep linear networks; verdict: invalid, rounding errors
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = (x + 12582912.0 - 12582912.0) * 8
        return self.head(x)


def get_trained_model():
    return Model()
