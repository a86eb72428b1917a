# tries: masked_fill with a boolean constant; seen: listed by the task; verdict: invalid, `masked_fill`
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.register_buffer("mask", torch.arange(8)[:, None] > 3)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x.masked_fill(self.mask, 0.0)  # offence
        return self.head(x)


def get_trained_model():
    return Model()
