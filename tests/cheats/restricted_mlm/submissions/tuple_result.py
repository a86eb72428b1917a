# tries: more than logits; seen: common by accident; verdict: invalid, one tensor
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 64)

    def forward(self, ids):
        x = self.embedding(ids)
        return x, x


def get_trained_model():
    return Model()
