# tries: exhausting the scorer's memory with many tensors kept alive; seen: found by us; verdict: invalid, tensors alive at
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        wide = torch.cat([x] * 100, 1)
        kept = [wide * i for i in range(80)]
        for part in kept:
            x = x + part[:, :8]
        return self.head(x)


def get_trained_model():
    return Model()
