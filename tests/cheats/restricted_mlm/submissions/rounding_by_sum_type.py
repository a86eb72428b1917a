# tries: round by summing in float16; seen: found by attack; verdict: invalid, rounding errors
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = (torch.stack([x, torch.full_like(x, 1536.0)]).sum(0, dtype=torch.float16).float() - 1536.0) * 8
        return self.head(x)


def get_trained_model():
    return Model()
