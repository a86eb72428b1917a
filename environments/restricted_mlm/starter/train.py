"""Trains the model in model.py on masked tokens and saves its weights. `python train.py --tokens 4000000`."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from model import TASK, WEIGHTS, Model, get_trained_model
from safetensors.torch import save_file
from torch import Tensor, nn

DATA = Path(__file__).resolve().parent / "data"
LENGTH, MASK, MASK_SHARE = TASK["length"], TASK["mask_token"], TASK["mask_share"]

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", type=int, default=4_000_000, help="how many tokens to train on")
parser.add_argument("--batch", type=int, default=64, help="rows in a step")
parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument(
    "--fresh",
    action="store_true",
    help="start from random weights; the saved ones are kept under another name",
)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
options = parser.parse_args()

torch.manual_seed(options.seed)


def load_tokens(name: str) -> Tensor:
    """The whole file on the device, so that drawing rows costs nothing there."""
    return torch.from_numpy(np.load(DATA / name).astype(np.int32)).to(options.device)


def draw(tokens: Tensor, rows: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Cut random rows and hide random positions: ids, targets and hidden, each [rows, length]."""
    starts = torch.randint(len(tokens) - LENGTH, (rows, 1), generator=random, device=tokens.device)
    targets = tokens[starts + torch.arange(LENGTH, device=tokens.device)].long()
    hidden = torch.rand(rows, LENGTH, generator=random, device=tokens.device) < MASK_SHARE
    return torch.where(hidden, MASK, targets), targets, hidden


def masked_loss(model: nn.Module, ids: Tensor, targets: Tensor, hidden: Tensor) -> Tensor:
    with torch.autocast("cuda", torch.bfloat16, enabled=ids.is_cuda):
        logits = model(ids)  # [rows, length, vocabulary]
    return nn.functional.cross_entropy(logits[hidden].float(), targets[hidden])


@torch.no_grad()
def validate(model: nn.Module) -> float:
    model.eval()
    random = torch.Generator(options.device).manual_seed(0)  # the same rows every time
    losses = [masked_loss(model, *draw(validation, 64, random)).item() for _ in range(8)]
    model.train()
    return sum(losses) / len(losses)


def save(model: nn.Module) -> None:
    """Replace the weights file in one step; `--fresh` first puts the old one aside."""
    if options.fresh and WEIGHTS.exists():
        number = 1
        while (old := WEIGHTS.with_name(f"{WEIGHTS.stem}-old{number}{WEIGHTS.suffix}")).exists():
            number += 1
        WEIGHTS.rename(old)
        print(f"the weights that were saved before are now {old.name}")
    part = WEIGHTS.with_name(WEIGHTS.name + ".part")
    save_file({name: tensor.half().contiguous().cpu() for name, tensor in model.state_dict().items()}, part)
    part.replace(WEIGHTS)
    print(f"saved {WEIGHTS.name}")


train, validation = load_tokens("train.npy"), load_tokens("validation.npy")
try:
    model = Model() if options.fresh or not WEIGHTS.exists() else get_trained_model()
except ValueError as error:
    sys.exit(f"train.py: {error}")
model.to(options.device).train()
optimizer = torch.optim.AdamW(
    model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=options.device != "cpu"
)
random = torch.Generator(options.device).manual_seed(options.seed)
steps = max(1, options.tokens // (options.batch * LENGTH))
print(
    f"{sum(p.numel() for p in model.parameters()):,} parameters, {steps} steps, validation loss {validate(model):.4f}"
)

began = time.monotonic()
for step in range(1, steps + 1):
    for group in optimizer.param_groups:  # a short rise, then a line down to a tenth
        group["lr"] = options.rate * min(1.0, step / 50) * (1 - 0.9 * step / steps)
    loss = masked_loss(model, *draw(train, options.batch, random))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 100 == 0 or step == steps:
        rate = step * options.batch * LENGTH / (time.monotonic() - began)
        print(f"step {step}/{steps}  train loss {loss.item():.4f}  {rate:,.0f} tokens/s", flush=True)

print(f"validation loss {validate(model):.4f}")
save(model)
