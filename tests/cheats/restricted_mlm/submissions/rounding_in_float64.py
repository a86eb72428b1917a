# tries: floor in float64, where a check in float64 sees nothing; seen: found by attack; verdict: invalid, rounding errors
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = ((x.double() + 1.5 * 2.0**52) - 1.5 * 2.0**52).float() * 8
        return self.head(x)


def get_trained_model():
    return Model()
