# tries: exhausting the scorer's memory; seen: found by us; verdict: invalid, makes a tensor of
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x[:, :, None].expand(-1, -1, 10_000_000, -1).contiguous().sum(2)  # offence
        return self.head(x)


def get_trained_model():
    return Model()
