"""Honest and wrong ways to train, as changes to the sealed reference: what a bound of distance must tell apart."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

Options = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """One way to train; everything not named here is as in the reference."""

    honest: bool
    options: Callable[[Options], Options] = lambda options: {}
    """Lines of finetune.yaml that differ."""
    batches: Callable[[list[list[int]]], list[list[int]]] | None = None
    """What becomes of the steps' row numbers."""
    most: int | None = None
    """Tokens of one pass."""
    patch: Callable[[Any], contextlib.AbstractContextManager[Any]] = field(
        default=lambda fast: contextlib.nullcontext()
    )
    devices: tuple[str, ...] = ("cpu", "cuda")
    double: bool = False


def _without_row(step: int) -> Callable[[list[list[int]]], list[list[int]]]:
    def change(batches: list[list[int]]) -> list[list[int]]:
        at = step % len(batches)
        return [rows[:-1] if number == at else rows for number, rows in enumerate(batches)]

    return change


def _swapped(batches: list[list[int]]) -> list[list[int]]:
    middle = len(batches) // 2
    return [*batches[:middle], batches[middle + 1], batches[middle], *batches[middle + 2 :]]


def _other_rows(batches: list[list[int]]) -> list[list[int]]:
    rows = sorted(itertools.chain(*batches))
    return [[rows.pop() for _ in batch] for batch in batches]


@contextlib.contextmanager
def _steps_short(fast: Any, count: int) -> Iterator[None]:
    """Leave the last steps out; the schedule stays that of the whole run, which is the smallest difference."""
    batches_of, rate_of = fast.batches_of, fast.rate_of
    with (
        mock.patch.object(fast, "batches_of", lambda *given: batches_of(*given)[:-count]),
        mock.patch.object(
            fast, "rate_of", lambda options, step, steps: rate_of(options, step, steps + count)
        ),
    ):
        yield


@contextlib.contextmanager
def _mean_over_rows(fast: Any) -> Iterator[None]:
    backward = fast.backward

    def each(model: Any, rows: list[Any], _targets: int, most: int) -> None:
        for row in rows:
            own = sum(label != fast.IGNORED for label in row[1][1:])
            backward(model, [row], own * len(rows), most)

    with mock.patch.object(fast, "backward", each):
        yield


@contextlib.contextmanager
def _weights_kept_in_bf16(fast: Any) -> Iterator[None]:
    import torch

    class Rounded(torch.optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            found = super().step(closure)
            with torch.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter.copy_(parameter.bfloat16())
            return found

    with mock.patch.object(torch.optim, "AdamW", Rounded):
        yield


@contextlib.contextmanager
def _norm_in_one_sum(_fast: Any) -> Iterator[None]:
    """Sum all gradients' squares in single precision at once: the least exact way that is still honest."""
    import torch

    single = torch.linalg.vector_norm  # not flat.norm(), which may call what is replaced here
    with mock.patch.object(torch.linalg, "vector_norm", lambda flat, **_: single(flat)):
        yield


@contextlib.contextmanager
def _plain_attention(_fast: Any) -> Iterator[None]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


def _scaled(name: str, by: float) -> Callable[[Options], Options]:
    return lambda options: {name: options[name] * by}


def _set(**lines: Any) -> Callable[[Options], Options]:
    return lambda options: lines


VARIANTS: dict[str, Variant] = {
    "again": Variant(True),
    "passes of one row": Variant(True, most=1),
    "passes of 4,096 tokens": Variant(True, most=4096),
    "passes of 65,536 tokens": Variant(True, most=65536),
    "attention without fused kernels": Variant(True, patch=_plain_attention),
    "norm in one fp32 sum": Variant(True, patch=_norm_in_one_sum),
    "double precision": Variant(True, double=True, devices=("cpu",)),
    "fp32 throughout": Variant(True, _set(precision="fp32"), devices=("cuda",)),
    "bf16 throughout": Variant(False, _set(precision="bf16"), devices=("cpu",)),
    "weights kept in bf16": Variant(False, patch=_weights_kept_in_bf16, devices=("cuda",)),
    "one row left out of the last step": Variant(False, batches=_without_row(-1)),
    "one row left out of a step in the middle": Variant(False, batches=lambda b: _without_row(len(b) // 2)(b)),
    "one step short": Variant(False, patch=lambda fast: _steps_short(fast, 1)),
    "two steps short": Variant(False, patch=lambda fast: _steps_short(fast, 2)),
    "two steps in the middle swapped": Variant(False, batches=_swapped),
    "learning rate + 0.1 %": Variant(False, _scaled("learning_rate", 1.001)),
    "learning rate + 1 %": Variant(False, _scaled("learning_rate", 1.01)),
    "learning rate + 5 %": Variant(False, _scaled("learning_rate", 1.05)),
    "no weight decay": Variant(False, _set(weight_decay=0.0)),
    "eps a tenth": Variant(False, _scaled("eps", 0.1)),
    "betas 0.9, 0.999": Variant(False, _set(betas=[0.9, 0.999])),
    "linear instead of cosine": Variant(False, _set(schedule="linear")),
    "one more step of warm-up": Variant(False, lambda options: {"warmup_steps": options["warmup_steps"] + 1}),
    "no clipping": Variant(False, _set(clip_norm=0.0)),
    "rows cut at 15/16": Variant(False, lambda options: {"max_length": options["max_length"] * 15 // 16}),
    "loss on all tokens": Variant(False, _set(loss_on="all")),
    "mean over rows instead of tokens": Variant(False, patch=_mean_over_rows),
    "another order of rows": Variant(False, batches=_other_rows),
    "untrained": Variant(False, batches=lambda _batches: []),
}  # fmt: skip


def train_as(fast: Any, variant: Variant, options: Options, device: Any, most: int) -> dict[str, Any]:
    """Train the model that `options` name in this way and return its weights, rounded as they would be stored."""
    import pathlib

    changed = {**options, **variant.options(options)}
    model = fast.load(pathlib.Path(options["model"]), changed["max_length"], device, changed["precision"])
    if variant.double:
        _make_double(model)
    samples = fast.encode(changed)
    batches_of = fast.batches_of
    change = variant.batches or (lambda batches: batches)
    with (
        mock.patch.object(fast, "batches_of", lambda *given: change(batches_of(*given))),
        variant.patch(fast),
    ):
        fast.train(changed, model, samples, most=variant.most or most)
    stored = getattr(model, "stored", {})
    return {
        name: weight.detach() if variant.double else weight.detach().to(stored.get(name, weight.dtype))
        for name, weight in model.weights.items()
    }


def _make_double(model: Any) -> None:
    import torch

    model.weights = {name: w.detach().double().requires_grad_() for name, w in model.weights.items()}
    model.used, model.dtype = model.weights, torch.float64
    model.cosine, model.sine = model.cosine.double(), model.sine.double()
