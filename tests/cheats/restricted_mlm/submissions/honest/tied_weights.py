# honest: the embedding is the output matrix, with a literal scale and positions from a constant index
import math

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.place = nn.Embedding(8, 16)
        self.register_buffer("places", torch.arange(8))

    def forward(self, ids):
        x = self.embedding(ids) + self.place(self.places)[None]
        x = x + torch.cat([x[:, 1:], x[:, :1]], dim=1) * 0.5
        return functional.linear(x, self.embedding.weight) * (1 / math.sqrt(16))


def get_trained_model():
    return Model()
