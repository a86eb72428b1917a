"""The network of minigpt: GPT-2's shape in one class, and the table of tensors that its checkpoints hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class MiniGPTConfig:
    """Sizes of one network."""

    vocabulary: int
    context: int
    """The most tokens it can look at."""
    layers: int
    heads: int
    width: int


def tensor_shapes(config: MiniGPTConfig) -> dict[str, tuple[int, ...]]:
    """Return tensor name -> shape of a checkpoint; the output matrix is the embedding and stands in it once."""
    width = config.width
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (config.vocabulary, width),
        "positions.weight": (config.context, width),
    }
    for layer in range(config.layers):
        for name, shape in (
            ("norm_1.weight", (width,)), ("norm_1.bias", (width,)),
            ("attention.mix.weight", (3 * width, width)), ("attention.mix.bias", (3 * width,)),
            ("attention.out.weight", (width, width)), ("attention.out.bias", (width,)),
            ("norm_2.weight", (width,)), ("norm_2.bias", (width,)),
            ("mlp.up.weight", (4 * width, width)), ("mlp.up.bias", (4 * width,)),
            ("mlp.down.weight", (width, 4 * width)), ("mlp.down.bias", (width,)),
        ):  # fmt: skip
            shapes[f"blocks.{layer}.{name}"] = shape
    return shapes | {"norm.weight": (width,), "norm.bias": (width,)}


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, config: MiniGPTConfig, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, dropout
        self.mix = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, length, width] -> the same shape."""
        batch, length, width = x.shape
        parts = self.mix(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each [batch, heads, length, width / heads]
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        joined: Tensor = self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return joined


class MLP(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, length, width] -> the same shape."""
        down: Tensor = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return down


class Block(nn.Module):
    """One layer: attention, then the MLP, each behind a layer norm and added to its input."""

    def __init__(self, config: MiniGPTConfig, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm_1, self.attention = nn.LayerNorm(config.width), Attention(config, dropout)
        self.norm_2, self.mlp = nn.LayerNorm(config.width), MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, length, width] -> the same shape."""
        x = x + self.dropout(self.attention(self.norm_1(x)))
        further: Tensor = x + self.dropout(self.mlp(self.norm_2(x)))
        return further


class MiniGPT(nn.Module):
    """Token ids to logits; the embedding serves as output matrix too."""

    def __init__(self, config: MiniGPTConfig, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(config, dropout) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw weights as GPT-2 does: normal of 0.02, residual outputs smaller by the square root of their number."""
        for name, parameter in self.named_parameters():
            if name.endswith(".bias"):
                nn.init.zeros_(parameter)
            elif "norm" in name:
                nn.init.ones_(parameter)
            else:
                residual = name.endswith(("attention.out.weight", "mlp.down.weight"))
                spread = 0.02 / (2 * self.config.layers) ** 0.5 if residual else 0.02
                nn.init.normal_(parameter, std=spread, generator=generator)

    def features(self, ids: Tensor) -> Tensor:
        """Token ids [batch, length] -> what the output matrix is applied to, [batch, length, width]."""
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        normed: Tensor = self.norm(x)
        return normed

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [batch, length] -> logits [batch, length, vocabulary]."""
        return functional.linear(self.features(ids), self.embedding.weight)


def build(sizes: dict[str, Any], dropout: float = 0.0) -> MiniGPT:
    """Return the network of `sizes`, the keys of `MiniGPTConfig`."""
    return MiniGPT(MiniGPTConfig(**sizes), dropout)
