# tries: a forward hook that changes a layer's output; seen: listed by the task; verdict: invalid, `tanh`
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.embedding.register_forward_hook(lambda module, given, result: result.tanh())
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]

        return self.head(x)


def get_trained_model():
    return Model()
