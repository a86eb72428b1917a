# tries: a hash by overflow of a small integer type; seen: listed by the task; verdict: invalid, squeezes token ids
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x + self.embedding(ids.to(torch.int8).long())  # offence
        return self.head(x)


def get_trained_model():
    return Model()
