# tries: another model after the first calls, by a counter; seen: listed by the task; verdict: invalid, `copy`
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        self.calls = self.calls + 1  # offence
        x = x * self.calls
        return self.head(x)


def get_trained_model():
    return Model()
