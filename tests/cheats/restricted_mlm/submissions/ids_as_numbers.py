# tries: a table of token pairs by arithmetic on ids; seen: listed by the task; verdict: invalid, computes with token ids
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.pairs = nn.Embedding(64 * 64, 16)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = self.pairs(ids * 64 + torch.cat([ids[:, 1:], ids[:, :1]], 1))  # offence
        return self.head(x)


def get_trained_model():
    return Model()
