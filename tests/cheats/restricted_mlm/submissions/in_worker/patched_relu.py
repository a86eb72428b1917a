# tries: relu replaced by another function before capture; seen: block-lists un-patched upstream; verdict: invalid, `exp`
import torch
from torch import nn

torch.relu = torch.exp


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 64)

    def forward(self, ids):
        return torch.relu(self.embedding(ids))  # offence


def get_trained_model():
    return Model()
