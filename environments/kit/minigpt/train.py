"""Trains minigpt on one CUDA device: the script, with `config.json`, that made the shipped weights.

`python -m environments.kit.minigpt.train large --train train.npy --validation validation.npy --out FOLDER`

writes `large.safetensors` (float16) and `large-curve.csv` (tokens, rate, train loss, validation loss). The network is too
small to keep a large device busy launch by launch, so a whole step is recorded once as a CUDA graph and replayed.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from environments.kit.minigpt.network import MiniGPT, build

CONFIG = Path(__file__).with_name("config.json")
POINTS = 60
"""Rows of the curve."""
_WARM_STEPS = 3
"""Steps on a side stream before recording, so that every library has taken its memory."""


class Point(NamedTuple):
    """One row of the curve."""

    tokens: int
    rate: float
    train_loss: float
    validation_loss: float


def rate_at(step: int, steps: int, training: dict[str, Any]) -> float:
    """Return the learning rate: a linear rise, then a cosine down to the share `final`."""
    rise = min(1.0, (step + 1) / max(1, training["warm_up"]))
    done = min(1.0, step / max(1, steps))
    fall = training["final"] + (1 - training["final"]) * 0.5 * (1 + math.cos(math.pi * done))
    return float(training["rate"] * rise * fall)


def next_token_loss(model: MiniGPT, ids: Tensor, device: str) -> Tensor:
    """Return the mean loss of ids [rows, context + 1]; matrix products in bfloat16 on a device."""
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=device == "cuda", cache_enabled=False):
        logits = model(ids[:, :-1])
    return functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def validation_loss(model: MiniGPT, tokens: Tensor, rows: int = 64) -> float:
    """Return the loss on all of `tokens`, cut into rows without overlap, in float32 arithmetic."""
    context = model.config.context
    count = (len(tokens) - 1) // context
    ids = tokens[: count * context + 1].unfold(0, context + 1, context)  # [count, context + 1]
    parts = [ids[at : at + rows] for at in range(0, count, rows)]
    model.eval()
    losses = [next_token_loss(model, part, "cpu").item() * len(part) for part in parts]
    model.train()
    return sum(losses) / count


def recorded_step(step: Callable[[], None]) -> Callable[[], None]:
    """Return `step` as the replay of a CUDA graph."""
    side: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_STEPS):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def train(
    model: MiniGPT, train_tokens: Tensor, validation_tokens: Tensor, training: dict[str, Any], device: str
) -> Iterator[Point]:
    """Train `model` in place and yield a point of the curve now and then."""
    context, rows = model.config.context, training["rows"]
    steps = max(1, training["tokens"] // (rows * context))
    rate = torch.tensor(0.0, device=device)
    groups = _groups(model, training["weight_decay"])
    optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True, capturable=device == "cuda")
    offsets = torch.arange(context + 1, device=device)
    starts = torch.zeros(rows, dtype=torch.int64, device=device)
    total = torch.zeros((), device=device)

    def step() -> None:
        loss = next_token_loss(model, train_tokens[starts[:, None] + offsets], device)
        optimiser.zero_grad(set_to_none=False)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.step()
        total.add_(loss.detach())

    advance = recorded_step(step) if device == "cuda" else step
    chance = torch.Generator(device=device).manual_seed(training["seed"])
    total.zero_()
    since = 0
    for number in range(steps):
        rate.fill_(rate_at(number, steps, training))
        starts.copy_(torch.randint(len(train_tokens) - context, (rows,), generator=chance, device=device))
        advance()
        since += 1
        if (number + 1) % max(1, steps // POINTS) == 0 or number + 1 == steps:
            mean = total.item() / since
            yield Point(
                (number + 1) * rows * context, rate.item(), mean, validation_loss(model, validation_tokens)
            )
            total.zero_()
            since = 0


def _groups(model: MiniGPT, weight_decay: float) -> list[dict[str, Any]]:
    """Weight decay on matrices, none on vectors."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def load_tokens(path: Path, device: str) -> Tensor:
    """Return a token file as one row of int64 on `device`."""
    return torch.from_numpy(np.load(path, allow_pickle=False).astype(np.int64)).to(device)


def main(arguments: list[str]) -> None:
    """Train one of the two networks and save it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("which", choices=("large", "helper"))
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--validation", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, help="instead of the configured number")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    config = json.loads(CONFIG.read_text())[options.which]
    training = config["training"] | ({"tokens": options.tokens} if options.tokens else {})
    torch.manual_seed(training["seed"])
    model = build(config["sizes"], training["dropout"])
    model.initialise()
    model.to(options.device).train()
    texts, held_out = (load_tokens(path, options.device) for path in (options.train, options.validation))
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (options.out / f"{options.which}-curve.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(Point._fields)
        for point in train(model, texts, held_out, training, options.device):
            rows.writerow(
                [point.tokens, f"{point.rate:.3g}", f"{point.train_loss:.4f}", f"{point.validation_loss:.4f}"]
            )
            sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {point}\n")
    weights = {name: tensor.half().contiguous().cpu() for name, tensor in model.state_dict().items()}
    save_file(weights, options.out / f"{options.which}.safetensors")


if __name__ == "__main__":
    main(sys.argv[1:])
