# tries: weights that are not numbers; seen: common by accident; verdict: invalid, not finite
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.head.bias.data[0] = float('nan')
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]

        return self.head(x)


def get_trained_model():
    return Model()
