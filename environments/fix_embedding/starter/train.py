"""Fine-tunes the large model, measures it, and saves it to model.safetensors. `python train.py --tokens 1000000`."""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from model import CONTEXT, DAMAGED, WEIGHTS, load_helper, load_model, new_model, save_model
from torch import Tensor, nn

DATA = Path(__file__).resolve().parent / "data"

parser = argparse.ArgumentParser()
parser.add_argument(
    "--tokens", type=int, default=1_000_000, help="how many tokens to train on; 0: only measure"
)
parser.add_argument("--rows", type=int, default=16, help="rows in a step")
parser.add_argument("--rate", type=float, default=1e-3, help="highest learning rate")
parser.add_argument("--from", dest="start", choices=("saved", "damaged", "random", "helper"), default="saved")
parser.add_argument("--validation-rows", type=int, default=128)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
options = parser.parse_args()

kind = torch.device(options.device).type
torch.manual_seed(options.seed)
random = np.random.default_rng(options.seed)
train = np.load(DATA / "train.npy", mmap_mode="r")
validation = np.load(DATA / "validation.npy", mmap_mode="r")


def take(tokens: np.ndarray, starts: np.ndarray) -> Tensor:
    """Rows [len(starts), CONTEXT + 1]: every token but the first is to be predicted from those before it."""
    rows = np.stack([tokens[s : s + CONTEXT + 1] for s in starts]).astype(np.int64)
    return torch.from_numpy(rows).to(options.device)


def loss_of(model: nn.Module, ids: Tensor, half: bool = False) -> Tensor:
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=half and kind == "cuda"):
        logits = model(ids[:, :-1])  # [rows, CONTEXT, vocabulary]
    return nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def measure(model: nn.Module, tokens: np.ndarray) -> float:
    """The loss on the same rows every time, in float32 as it is scored."""
    count = min(options.validation_rows, (len(tokens) - 1) // CONTEXT)
    starts = np.linspace(0, len(tokens) - CONTEXT - 1, count).astype(int)
    model.eval()
    losses = [
        loss_of(model, take(tokens, part)).item() * len(part)
        for part in np.array_split(starts, -(-count // 16))
    ]
    model.train()
    return sum(losses) / count


starts = {
    "saved": lambda: load_model(WEIGHTS),
    "damaged": lambda: load_model(DAMAGED),
    "random": new_model,
    "helper": load_helper,  # only to measure it: its weights are not what you hand in
}
model = starts[options.start]().to(options.device).train()
steps = 0 if options.start == "helper" else options.tokens // (options.rows * CONTEXT)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {steps} steps, from {options.start}")
print(f"train loss {measure(model, train):.4f}, validation loss {measure(model, validation):.4f}", flush=True)

optimizer = torch.optim.AdamW(
    model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=kind == "cuda"
)
began = time.monotonic()
for step in range(1, steps + 1):
    for group in optimizer.param_groups:  # a short rise, then half a cosine down to a tenth
        group["lr"] = options.rate * min(1.0, step / 50) * (0.55 + 0.45 * math.cos(math.pi * step / steps))
    ids = take(train, random.integers(0, len(train) - CONTEXT, options.rows))
    loss = loss_of(model, ids, half=True)  # on a GPU the products are in bfloat16
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 100 == 0 or step == steps:
        rate = step * options.rows * CONTEXT / (time.monotonic() - began)
        print(f"step {step}/{steps}  train loss {loss.item():.4f}  {rate:,.0f} tokens/s", flush=True)

if steps:
    print(f"train loss {measure(model, train):.4f}, validation loss {measure(model, validation):.4f}")
    save_model(model)
    print(f"saved {WEIGHTS.name}")
