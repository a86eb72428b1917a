# honest: a mixer with einsum, residual branches scaled by a learned number
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.inside = nn.Linear(16, 16)
        self.mix = nn.Parameter(torch.randn(8, 8))
        self.scale = nn.Parameter(torch.tensor(0.1))
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = x + self.scale * torch.einsum('ij,bjd->bid', self.mix, torch.relu(self.inside(x)))
        return self.head(x)


def get_trained_model():
    return Model()
