"""The two models: a large one whose embedding was damaged, and a small healthy one. Both in GPT-2's shape."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
TASK = json.loads((HERE / "task.json").read_text())
CONTEXT = TASK["length"]  # tokens that a row predicts
WEIGHTS = HERE / "model.safetensors"  # what you hand in; at first a copy of the damaged model
DAMAGED = HERE / "data" / "damaged.safetensors"  # the damaged model, to come back to
HELPER = HERE / "data" / "helper.safetensors"  # the small healthy one


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (
            self.mix(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        )  # each [B, H, T, C / H]
        dropout = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(width), Attention(width, heads, dropout)
        self.norm_2, self.mlp = nn.LayerNorm(width), MLP(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm_1(x)))
        return x + self.dropout(self.mlp(self.norm_2(x)))


class Model(nn.Module):
    def __init__(
        self, vocabulary: int, context: int, layers: int, heads: int, width: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():  # as GPT-2 begins; load_model replaces all of it
            if parameter.dim() > 1:
                last = name.endswith(("attention.out.weight", "mlp.down.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if last else 0.02)
            elif name.endswith(".bias"):
                nn.init.zeros_(parameter)

    def features(self, ids: Tensor) -> Tensor:
        """Token ids [B, T] -> what the output matrix is applied to, [B, T, C]."""
        x = self.dropout(self.embedding(ids) + self.positions.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [B, T] -> logits [B, T, vocabulary]. The output matrix is the embedding itself."""
        return functional.linear(self.features(ids), self.embedding.weight)


def new_model(dropout: float = 0.0) -> Model:
    """The large architecture with random weights."""
    return Model(**TASK["large"], dropout=dropout)


def load_model(path: Path = WEIGHTS, dropout: float = 0.0) -> Model:
    """The large architecture with the weights of a file."""
    return _load(new_model(dropout), path)


def load_helper() -> Model:
    """The small healthy model."""
    return _load(Model(**TASK["helper"]), HELPER)


def save_model(model: Model, path: Path = WEIGHTS) -> None:
    """Save as float16, in one step: the file is whole at every moment."""
    part = path.with_suffix(".part")
    save_file(
        {name: tensor.detach().half().contiguous().cpu() for name, tensor in model.state_dict().items()}, part
    )
    part.replace(path)


def _load(model: Model, path: Path) -> Model:
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()})
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, model in (("large", load_model()), ("helper", load_helper())):
        print(f"{name}: {sum(p.numel() for p in model.parameters()):,} parameters")
        print(*(f"  {key} {tuple(tensor.shape)}" for key, tensor in model.state_dict().items()), sep="\n")
