"""Computes the next-token loss of the large model on protected rows."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from environments.kit.log_loss import Loss


class EvaluationRefused(Exception):
    """The model's answers cannot be scored; the message is for the participant."""


class EvaluationTimedOut(Exception):
    """The time for scoring ran out."""


def draw_rows(tokens: NDArray[np.uint16], rows: int, length: int, seed: int) -> Tensor:
    """Return `rows` rows of `length` + 1 tokens, cut without overlap of what they predict and chosen with `seed`."""
    available = (len(tokens) - 1) // length
    chosen = np.sort(np.random.default_rng(seed).permutation(available)[:rows])
    cut = np.stack([np.asarray(tokens[i * length : (i + 1) * length + 1], dtype=np.int64) for i in chosen])
    return torch.from_numpy(cut)  # [rows, length + 1]


@contextlib.contextmanager
def repeatable(device: str) -> Iterator[None]:
    """On a GPU: float32 products without TF32, attention by its definition, and no kernel whose sums vary."""
    if torch.device(device).type != "cuda":
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    matrices = torch.backends.cuda.matmul
    before = matrices.allow_tf32, torch.are_deterministic_algorithms_enabled()
    matrices.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        matrices.allow_tf32 = before[0]
        torch.use_deterministic_algorithms(before[1])


@torch.inference_mode()
def mean_loss(
    model: nn.Module,
    rows: Tensor,
    batch: int,
    *,
    device: str = "cpu",
    workers: int = 1,
    deadline: float = math.inf,
    report: Callable[[float], None] = lambda fraction: None,
) -> Loss:
    """Return the mean cross-entropy of every token after a row's first.

    Each batch is computed by one thread, so the result does not depend on how many there are; on a GPU it is the same
    to the last bit every time.

    Args:
        rows: [rows, length + 1].
        workers: threads, each with a batch of its own.
        deadline: `time.monotonic()` at which to give up.
        report: is told the fraction done.

    Raises:
        EvaluationRefused: the losses are not finite.
        EvaluationTimedOut: the deadline passed.
    """
    began = time.monotonic()
    parts = [rows[at : at + batch] for at in range(0, len(rows), batch)]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # Numbers below float32's smallest normal one cost some processors a hundred times as long: they become 0.
        flush = torch.set_flush_denormal
        with repeatable(device), ThreadPoolExecutor(workers, initializer=flush, initargs=(True,)) as pool:
            futures = [pool.submit(_row_losses, model, part, device, deadline) for part in parts]
            found = []
            for number, future in enumerate(futures):
                found.append(future.result())
                report((number + 1) / len(parts))
    finally:
        torch.set_num_threads(before)
    losses = torch.cat(found)
    if not bool(torch.isfinite(losses).all()):
        raise EvaluationRefused(
            "the losses are not finite: the numbers in the checkpoint are too large to compute with"
        )
    return Loss(
        mean=float(losses.mean()),
        standard_error=float(losses.std() / math.sqrt(len(losses))) if len(losses) > 1 else 0.0,
        tokens=rows.shape[0] * (rows.shape[1] - 1),
        seconds=time.monotonic() - began,
    )


@torch.inference_mode()
def _row_losses(model: nn.Module, rows: Tensor, device: str, deadline: float) -> Tensor:
    """Return the mean loss of each row [rows], in float64."""
    if time.monotonic() > deadline:
        raise EvaluationTimedOut
    placed = rows.to(device)
    logits = model(placed[:, :-1])  # [rows, length, vocabulary]
    flat = functional.cross_entropy(logits.float().flatten(0, 1), placed[:, 1:].flatten(), reduction="none")
    return flat.view(len(rows), -1).double().mean(dim=1).cpu()
