"""The starting model: every position sees every other through two wide ReLU layers. Legal, and not very good."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
TASK = json.loads((HERE / "task.json").read_text())
WEIGHTS = HERE / "model.safetensors"

# ----------------------------------------------------------------------------
VOCABULARY = TASK["vocabulary"]  # entries, the mask token included
LENGTH = TASK["length"]  # tokens in a row
WIDTH = 32  # numbers for each token
HIDDEN = 256  # numbers for the whole row
# ----------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.into = nn.Linear(LENGTH * WIDTH, HIDDEN)
        self.inside = nn.Linear(HIDDEN, HIDDEN)
        self.out_of = nn.Linear(HIDDEN, LENGTH * WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [batch, length] -> logits [batch, length, vocabulary]."""
        x = self.embedding(ids)  # [batch, length, width]
        row = x.reshape(ids.shape[0], LENGTH * WIDTH)  # [batch, length * width]
        row = torch.relu(self.into(row))  # [batch, hidden]
        row = torch.relu(self.inside(row))  # [batch, hidden]
        row = torch.relu(self.out_of(row))  # [batch, length * width]
        x = row.reshape(ids.shape[0], LENGTH, WIDTH)  # [batch, length, width]
        return self.head(x)  # [batch, length, vocabulary]


def get_trained_model() -> nn.Module:
    """What the scorer calls: the model with its trained weights."""
    model = Model()
    weights = {name: tensor.float() for name, tensor in load_file(WEIGHTS).items()}  # stored as float16
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"{WEIGHTS.name} holds the weights of another model than model.py describes; "
            "train this one from random weights: python train.py --fresh"
        ) from error
    return model
