"""Computes the masked-token loss of a checked graph on protected rows."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from environments.kit.log_loss import Loss
from environments.restricted_mlm.graph import Graph
from environments.restricted_mlm.interpret import run_graph

LARGEST_SHIFT = 0.05
"""In nats: how far the mean loss of a batch may move when each row is alone or the arithmetic is shaken."""
LARGEST_NOISE = 0.25
"""In nats: how far single tokens' losses may move on average in shaken arithmetic; bfloat16 moves them by about 0.03."""


class EvaluationRefused(Exception):
    """The model's answers cannot be scored; the message is for the participant."""


class NotFinite(EvaluationRefused):
    """Logits or losses are NaN or infinite."""


_ROUNDING = (
    "the logits change when the same graph is computed with other rounding; "
    "a model may not compute with rounding errors"
)


class EvaluationTimedOut(Exception):
    """The time for scoring ran out."""


@dataclass(frozen=True)
class MaskedRows:
    """Rows to score."""

    ids: Tensor
    """[rows, length], hidden positions replaced by the mask token."""
    targets: Tensor
    """[rows, length], the true tokens."""
    hidden: Tensor
    """[rows, length], True where the token is hidden."""


def draw_rows(
    tokens: NDArray[np.uint16], rows: int, length: int, *, mask_token: int, mask_share: float, seed: int
) -> MaskedRows:
    """Cut `tokens` into rows, choose `rows` of them, and hide `mask_share` of the positions; all from `seed`.

    Every row has the same number of hidden positions, so each hidden token weighs the same. Rows come in random
    order: neighbours in a batch are no neighbours in the text. Where the text is short it is gone through again with
    other positions hidden.
    """
    random = np.random.default_rng(seed)
    available = len(tokens) // length
    passes = [random.permutation(available) for _ in range(-(-rows // max(1, available)))]
    chosen = np.concatenate(passes)[:rows]
    targets = np.asarray(tokens[: available * length], dtype=np.int64).reshape(available, length)[chosen]
    count = max(1, round(mask_share * length))
    order = random.random(targets.shape).argsort(axis=1)
    hidden = order < count
    ids = np.where(hidden, mask_token, targets)
    return MaskedRows(torch.from_numpy(ids), torch.from_numpy(targets), torch.from_numpy(hidden))


def masked_loss(
    graph: Graph,
    weights: Mapping[str, Tensor],
    rows: MaskedRows,
    batch: int,
    *,
    workers: int = 1,
    deadline: float = math.inf,
    report: Callable[[float], None] = lambda fraction: None,
) -> Loss:
    """Return the mean cross-entropy over the hidden tokens.

    Each batch is computed by one thread, so the result does not depend on how many there are, and a busy machine
    slows them down without making them wait for each other.

    Args:
        weights: graph name -> tensor, on the device to compute on.
        workers: threads, each with a batch of its own.
        deadline: `time.monotonic()` at which to give up.
        report: is told the fraction done.

    Raises:
        EvaluationRefused: logits are not finite.
        EvaluationTimedOut: the deadline passed.
        NodeFailed: an operation refuses its inputs.
        DeviceFailed: the device ran out of memory or broke.
    """
    began = time.monotonic()

    def one(start: int) -> Tensor:
        return _hidden_losses(graph, weights, _take(rows, slice(start, start + batch)), deadline)

    losses: list[Tensor] = []
    starts = range(0, len(rows.ids), batch)
    with _threads(workers) as pool:
        for part in pool.map(one, starts):
            losses.append(part)
            report(len(losses) / len(starts))
    every = torch.cat(losses)
    return Loss(
        mean=float(every.mean()),
        standard_error=float(every.std(correction=1) / math.sqrt(len(every))) if len(every) > 1 else math.inf,
        tokens=len(every),
        seconds=time.monotonic() - began,
    )


@contextlib.contextmanager
def _threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool whose threads compute each by itself; what waits is dropped when something goes wrong."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


def refuse_dependence(
    graph: Graph,
    weights: Mapping[str, Tensor],
    rows: MaskedRows,
    batch: int,
    *,
    seed: int,
    workers: int = 1,
    deadline: float = math.inf,
) -> None:
    """Refuse a model whose answer for a row depends on the other rows, or lives on rounding.

    One batch is computed together, row by row, and in shaken arithmetic (see `run_graph`); the losses must agree. All its
    rows take part, for a graph can tell the first few of a batch from the others.

    Raises:
        EvaluationRefused: they do not.
        EvaluationTimedOut: the deadline passed.
        NodeFailed: an operation refuses its inputs.
        DeviceFailed: the device ran out of memory or broke.
    """
    crowd = _take(rows, slice(0, batch))
    single = [_take(crowd, slice(i, i + 1)) for i in range(len(crowd.ids))]

    def losses(rows: MaskedRows, shake_seed: int | None = None) -> Tensor:
        return _hidden_losses(graph, weights, rows, deadline, shake_seed=shake_seed)

    with _threads(workers) as pool:
        together = pool.submit(losses, crowd)
        shaking = pool.submit(losses, crowd, seed)
        among = together.result()
        if not _agree(torch.cat(list(pool.map(losses, single))), among):
            raise EvaluationRefused(
                "the logits of a row change with the other rows of the batch; each row must be computed by itself"
            )
        try:
            shaken = shaking.result()
        except NotFinite as error:
            raise EvaluationRefused(_ROUNDING) from error
    if not _agree(shaken, among):
        raise EvaluationRefused(_ROUNDING)


def _agree(one: Tensor, other: Tensor) -> bool:
    """Whether two computations of the same losses differ by no more than their precision allows.

    Matrix products of other sizes add up in another order, above all on a GPU: in bfloat16 single losses move, their mean
    does not.
    """
    moved = one - other
    return float(moved.mean().abs()) <= LARGEST_SHIFT and float(moved.abs().mean()) <= LARGEST_NOISE


def _take(rows: MaskedRows, part: slice) -> MaskedRows:
    return MaskedRows(rows.ids[part], rows.targets[part], rows.hidden[part])


def _hidden_losses(
    graph: Graph,
    weights: Mapping[str, Tensor],
    rows: MaskedRows,
    deadline: float,
    *,
    shake_seed: int | None = None,
) -> Tensor:
    """Return the loss of each hidden token [hidden], in the order of the rows."""

    def watch_the_clock(*_: object) -> None:
        if time.monotonic() > deadline:
            raise EvaluationTimedOut

    device = next((tensor.device for tensor in weights.values()), torch.device("cpu"))
    shake = None if shake_seed is None else torch.Generator(device).manual_seed(shake_seed)
    logits = run_graph(
        graph, weights, rows.ids.to(device), observe=watch_the_clock, shake=shake
    )  # [rows, length, vocabulary]
    whole = isinstance(logits, Tensor) and logits.dim() == 3 and logits.shape[:2] == rows.ids.shape
    if not isinstance(logits, Tensor) or not whole or logits.shape[2] <= int(rows.targets.max()):
        raise EvaluationRefused(
            "the model does not return logits [batch, length, vocabulary] for every batch size"
        )
    chosen = logits[rows.hidden.to(device)]  # [hidden, vocabulary]
    chosen = chosen.float() if shake is None else chosen
    losses = functional.cross_entropy(chosen, rows.targets[rows.hidden].to(device), reduction="none")
    if not bool(torch.isfinite(losses).all()):
        raise NotFinite("the logits hold numbers that are not finite, or too large to compare")
    return losses.double().cpu()
