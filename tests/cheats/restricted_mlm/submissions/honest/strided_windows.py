# honest: a convolution by strided windows, once with as_strided and once with unfold
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)
        self.window = nn.Linear(48, 16)
    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        b = ids.shape[0]
        p = nn.functional.pad(x, (0, 0, 1, 1)).contiguous()  # [batch, 10, 16]
        w = p.as_strided((b, 8, 48), (160, 16, 1))  # [batch, 8, 3 * 16]
        x = x + torch.relu(self.window(w)) + self.window(p.unfold(1, 3, 1).reshape(b, 8, 48))
        return self.head(x)


def get_trained_model():
    return Model()
