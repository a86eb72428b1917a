# tries: round by multiplying down to the smallest float64 and up again; seen: found by attack; verdict: invalid, rounding errors
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = (x.double() * 2.0**-1000 * 2.0**-74 * 2.0**1000 * 2.0**74).float() * 8
        return self.head(x)


def get_trained_model():
    return Model()
