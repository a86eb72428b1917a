# tries: an operator of one's own, as C++ and Triton ones are; seen: listed by the task; verdict: invalid, exponential
import torch
from torch import nn

@torch.library.custom_op("cheat::exponential", mutates_args=())
def exponential(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


@exponential.register_fake
def _(x):
    return torch.empty_like(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, ids):
        x = self.embedding(ids)  # [batch, 8, 16]
        x = torch.ops.cheat.exponential(x)  # offence
        return self.head(x)


def get_trained_model():
    return Model()
