"""The models and rows of one prepared profile of fix_embedding, and the pairings of rows that need no training."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from prepared import folders_of
from torch import Tensor, nn
from torch.nn import functional

from environments.calibrate import Workshop
from environments.fix_embedding import networks
from environments.fix_embedding.damage import permutation, undo
from environments.fix_embedding.environment import DAMAGED, HELPER
from environments.fix_embedding.evaluate import draw_rows, mean_loss
from environments.fix_embedding.networks import Network
from environments.fix_embedding.settings import KEYS, decode_settings
from environments.kit.checkpoint import read_checkpoint
from environments.kit.log_loss import Loss
from environments.kit.tokens import read_tokens

_BLOCK = 4096
_POINTS = 128
"""Of a row's sorted cosines to all others, how many are compared."""
_ROUNDS = 200

Tensors = dict[str, Tensor]


class Task:
    """Damaged, healthy and helper model, the training text, and the protected rows with their loss."""

    def __init__(self, workshop: Workshop, rows: int | None, threads: int) -> None:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first handle is made
        self.settings = decode_settings(workshop.profile.settings)
        self.device = self.settings.device
        networks.require_device(self.device)
        torch.set_num_threads(threads)
        self._workers = threads if self.device == "cpu" else 1
        folders = folders_of(workshop)
        task = networks.read_task(folders.public)
        self.large = networks.network_of(self.settings.family, task["large"])
        self.small = networks.network_of(self.settings.family, task["helper"])
        self.damaged = read_checkpoint(folders.public, DAMAGED, self.large.checkpoint)
        self.helper = read_checkpoint(folders.public, HELPER, self.small.checkpoint)
        keys = KEYS.read(folders.protected)
        order = permutation(len(self.damaged[self.large.embedding]), keys.permutation_seed)
        self.true = torch.from_numpy(order).argsort()
        """[tokens], which damaged row is each token's own."""
        self.healthy = {
            **self.damaged,
            self.large.embedding: undo(self.damaged[self.large.embedding], keys.permutation_seed),
        }
        self.text: NDArray[np.uint16] = read_tokens(folders.public / "train.npy")
        scoring = read_tokens(folders.protected / "scoring.npy")
        wanted = self.settings.scoring_rows if rows is None else rows
        self.rows = draw_rows(scoring, wanted, self.settings.length, keys.rows_seed)

    def loss(self, network: Network, tensors: Tensors) -> Loss:
        """Return the loss of a checkpoint on the protected rows, computed as the scorer does."""
        model = network.build(tensors).to(self.device)
        return mean_loss(model, self.rows, self.settings.batch, device=self.device, workers=self._workers)

    def with_rows(self, place: Tensor) -> Tensors:
        """Return the damaged model with row `place[token]` put at each token."""
        rows = self.damaged[self.large.embedding]
        return {**self.damaged, self.large.embedding: rows[place.cpu()].contiguous()}

    def with_true_rows(self, place: Tensor) -> Tensors:
        """Return the same, with the rows that `place` left open put right."""
        return self.with_rows(torch.where(place >= 0, place, self.true))

    def begin(self, start: str) -> nn.Module:
        """Return the large network to train on: `damaged`, `healthy`, or `random` weights of torch's generator."""
        if start == "random":
            return self.large.random()
        return self.large.build(self.healthy if start == "healthy" else self.damaged)

    def saved(self, model: nn.Module) -> Tensors:
        """Return a trained model as the checkpoint that would be handed in."""
        named = dict(getattr(model, "inner", model).named_parameters())
        return {name: named[name].detach().half().cpu() for name in self.large.layout}

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Return the damaged rows and the helper's, in float32 on the device."""
        rows, own = self.damaged[self.large.embedding], self.helper[self.small.embedding]
        return rows.float().to(self.device), own.float().to(self.device)

    def read_reference(self, folder: Path) -> Tensors:
        return read_checkpoint(folder, "model.safetensors", self.large.checkpoint)

    def rightness(self, place: Tensor) -> dict[str, Any]:
        """Return how right a placement is: shares of types, of types in the text, of the text, and of what is placed."""
        counts = torch.bincount(torch.from_numpy(self.text.astype(np.int64)), minlength=len(self.true))
        right, placed, seen = place.cpu() == self.true, place.cpu() >= 0, counts > 0
        return {
            "types": float(right.float().mean()),
            "types_in_text": float(right[seen].float().mean()),
            "text": float(counts[right].sum() / counts.sum()),
            "placed": int(placed.sum()),
            "of_placed": float(right[placed].float().mean()) if bool(placed.any()) else None,
        }


def by_norms(rows: Tensor, own: Tensor) -> Tensor:
    """Pair tokens with rows by the rank of their norms."""
    place = torch.empty(len(own), dtype=torch.long, device=rows.device)
    place[own.norm(dim=1).argsort()] = rows.norm(dim=1).argsort()
    return place


def by_similarities(rows: Tensor, own: Tensor) -> Tensor:
    """Pair each token with the row whose cosines to all others are distributed most alike, mutual choices first."""
    tokens, given = _looks(own), _looks(rows)
    place = torch.full((len(own),), -1, dtype=torch.long, device=rows.device)
    for _ in range(_ROUNDS):
        open_tokens, left = (place < 0).nonzero()[:, 0], _unused(place, len(rows))
        if not len(open_tokens):
            break
        chosen, back = _nearest(tokens[open_tokens], given[left])
        mutual = back[chosen] == torch.arange(len(open_tokens), device=rows.device)
        place[open_tokens[mutual]] = left[chosen[mutual]]
    place[place < 0] = _unused(place, len(rows))
    return place


def _looks(embedding: Tensor) -> Tensor:
    """Return quantiles of each row's cosines to all rows, standardised and of norm 1: [rows, points]."""
    unit = functional.normalize(embedding - embedding.mean(0), dim=1)
    points = torch.linspace(0, len(unit) - 1, _POINTS).long().to(unit.device)
    parts = [unit[first : first + _BLOCK // 2] for first in range(0, len(unit), _BLOCK // 2)]
    looks = torch.cat([(part @ unit.T).sort(dim=1).values[:, points] for part in parts])
    return functional.normalize((looks - looks.mean(0)) / (looks.std(0) + 1e-6), dim=1)


def _unused(place: Tensor, rows: int) -> Tensor:
    taken = torch.zeros(rows, dtype=torch.bool, device=place.device)
    taken[place[place >= 0]] = True
    return (~taken).nonzero()[:, 0]


def _nearest(ones: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each of `ones` the most alike of `others`, and the other way round."""
    best = torch.full((len(others),), -math.inf, device=ones.device)
    back = torch.zeros(len(others), dtype=torch.long, device=ones.device)
    chosen = []
    for first in range(0, len(ones), _BLOCK):
        alike = ones[first : first + _BLOCK] @ others.T
        chosen.append(alike.argmax(dim=1))
        values, indices = alike.max(dim=0)
        back = torch.where(values > best, first + indices, back)
        best = torch.maximum(values, best)
    return torch.cat(chosen), back
