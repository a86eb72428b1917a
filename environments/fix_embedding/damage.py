"""The damage: one permutation of the embedding's rows, drawn with the sealed seed, and what a proctor may ask about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


def permutation(rows: int, seed: int) -> NDArray[np.int64]:
    """Return which healthy row stands in each damaged one."""
    import numpy as np

    return np.random.default_rng(seed).permutation(rows)


def damage(embedding: Tensor, seed: int) -> Tensor:
    """Return the embedding [vocabulary, width] with its rows permuted."""
    import torch

    return embedding[torch.from_numpy(permutation(len(embedding), seed))].contiguous()


def undo(damaged: Tensor, seed: int) -> Tensor:
    """Return the healthy embedding."""
    import torch

    return damaged[torch.from_numpy(permutation(len(damaged), seed)).argsort()].contiguous()


def share_restored(submitted: Tensor, healthy: Tensor) -> float:
    """Return the share of rows that are, bit for bit, the healthy ones."""
    return float((submitted == healthy).all(dim=1).float().mean())
