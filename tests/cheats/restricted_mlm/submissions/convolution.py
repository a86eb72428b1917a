# tries: a built-in convolution; seen: listed by the task; verdict: invalid, `conv1d`
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.conv = nn.Conv1d(16, 16, 3, padding=1)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)  # offence
        return self.head(x)


def get_trained_model():
    return Model()
