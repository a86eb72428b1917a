# honest: the mask token known by a one-number embedding, constants in forward, gather
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.indicator = nn.Embedding(64, 1)
        self.indicator.weight.data.zero_()[1] = 1
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        is_mask = self.indicator(ids)  # [batch, 8, 1]
        turn = torch.arange(7, -1, -1)[None, :, None].expand(ids.shape[0], 8, 16)
        x = x * (1 - is_mask) + is_mask * torch.gather(x, 1, turn)
        return self.head(x)


def get_trained_model():
    return Model()
