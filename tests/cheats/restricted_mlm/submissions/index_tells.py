# tries: a look-up whose failure would tell held-out tokens; seen: found by attack; verdict: invalid, an index lies outside 0..63
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 64)
        self.register_buffer("code", torch.arange(64) + 4_000_000)

    def forward(self, ids):
        return self.embedding(self.code[ids])  # offence


def get_trained_model():
    return Model()
