# honest: autocast, casts to bfloat16 and back, and dropout in training
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.inside = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.1)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        with torch.autocast('cpu', dtype=torch.bfloat16):
            x = x + self.drop(torch.relu(self.inside(x)))
        x = x.to(torch.bfloat16).float() - 0.5 * x
        return self.head(x)


def get_trained_model():
    return Model()
