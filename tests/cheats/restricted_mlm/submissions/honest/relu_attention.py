# honest: attention with squared relu, learned relative positions and a 1/length scale
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.near = nn.Parameter(torch.zeros(2, 15))
        self.register_buffer("distance", torch.arange(8)[:, None] - torch.arange(8)[None] + 7)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        b = ids.shape[0]
        q, k, v = self.qkv(x).view(b, 8, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.near[:, self.distance.flatten()].view(2, 8, 8)
        weight = torch.relu(q @ k.transpose(-1, -2) * 8**-0.5 + bias)
        weight = weight * weight * (1 / 8)
        x = x + self.out((weight @ v).transpose(1, 2).reshape(b, 8, 16))
        return self.head(x)


def get_trained_model():
    return Model()
