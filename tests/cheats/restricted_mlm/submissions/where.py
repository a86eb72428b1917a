# tries: where on a comparison; seen: listed by the task; verdict: invalid, `gt`
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = torch.where(x > 0, x, 0)  # offence
        return self.head(x)


def get_trained_model():
    return Model()
