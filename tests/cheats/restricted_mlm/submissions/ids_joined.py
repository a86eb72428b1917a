# tries: token ids turned into numbers by joining them with numbers; seen: found by attack; verdict: invalid, turns token ids
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x + torch.cat([x[..., :15], ids[..., None]], -1) * 0.1  # offence
        return self.head(x)


def get_trained_model():
    return Model()
