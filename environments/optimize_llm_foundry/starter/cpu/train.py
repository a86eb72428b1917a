"""Stage 2: trains the model on the shards and leaves checkpoints behind."""

import json
import lzma
import math
import random
import sys
import time
from pathlib import Path

import torch
from options import read_options
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM


class Shards(Dataset):
    """The rows that stage 1 has stored."""

    def __init__(self, folder):
        self.folder = folder
        index = json.loads((folder / "index.json").read_text())
        self.samples, self.rows_per_shard = index["samples"], index["rows_per_shard"]

    def __len__(self):
        return self.samples

    def __getitem__(self, number):
        shard, row = divmod(number, self.rows_per_shard)
        with lzma.open(self.folder / f"{shard:05d}.json.xz", "rt") as file:
            sample = json.load(file)[row]
        return {name: torch.tensor(values) for name, values in sample.items()}  # each [length]


def batches_of(options, samples):
    """Return the row numbers of every step: each epoch is its own shuffle, and its last batch may be short."""
    batches = []
    for epoch in range(options.epochs):
        order = list(range(samples))
        if options.shuffle:
            random.Random(1000 * options.seed + epoch).shuffle(order)
        batches += [order[i : i + options.batch_size] for i in range(0, samples, options.batch_size)]
    return batches[: options.max_steps] if options.max_steps else batches


def learning_rate(options, step, steps):
    """Return the rate of `step`, counted from 1: up in a line, then down to final_lr_share of the peak."""
    if step <= options.warmup_steps:
        return options.learning_rate * step / options.warmup_steps
    progress = (step - options.warmup_steps - 1) / max(1, steps - options.warmup_steps)
    falling = {
        "cosine": 0.5 * (1 + math.cos(math.pi * progress)),
        "linear": 1 - progress,
        "constant": 1.0,
    }[options.schedule]
    if options.schedule == "constant":
        return options.learning_rate
    return options.learning_rate * (options.final_lr_share + (1 - options.final_lr_share) * falling)


def backward(model, rows, targets):
    """Add the gradient of one microbatch; the loss is a sum over tokens, divided by the `targets` of the whole batch."""
    logits = model(input_ids=rows["ids"], attention_mask=rows["attention"], use_cache=False).logits.float()
    predicted, labels = logits[:, :-1], rows["labels"][:, 1:]  # [b, t, vocabulary], [b, t]
    loss = cross_entropy(predicted.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    (loss / targets).backward()
    known = labels != -100
    right = ((predicted.argmax(-1) == labels) & known).sum()
    confidence = (predicted.softmax(-1).amax(-1) * known).sum()
    return loss.item(), right.item(), confidence.item()


def clip(parameters, limit):
    """Scale the gradients so that their norm together is at most `limit`; return the norm it was."""
    total = math.sqrt(sum(float(p.grad.double().pow(2).sum()) for p in parameters))
    if limit and total > limit:
        for parameter in parameters:
            parameter.grad.mul_(limit / total)
    return total


def describe(model, optimiser):
    """Return norms of every weight, gradient and moment, for the log."""
    norms = {}
    for name, parameter in model.named_parameters():
        state = optimiser.state[parameter]
        norms[name] = {
            "weight": parameter.detach().norm().item(),
            "gradient": parameter.grad.norm().item(),
            "moment": state["exp_avg"].norm().item(),
            "update": (state["exp_avg"] / (state["exp_avg_sq"].sqrt() + 1e-8)).norm().item(),
        }
    return norms


def save(folder, step, model, optimiser):
    folder.mkdir(parents=True, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
    torch.save(state, folder / f"step-{step:06d}.pt")
    (folder / "latest").write_text(f"step-{step:06d}.pt")


def main(config):
    options = read_options(config)
    if options.precision != "fp32":
        raise SystemExit(f"{config}: precision {options.precision} needs the gpu profile")
    torch.set_num_threads(options.threads)
    work = Path(options.work)
    model = AutoModelForCausalLM.from_pretrained(
        options.model, dtype=torch.float32, attn_implementation="eager"
    )
    model.train()
    if options.activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": options.weight_decay},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=options.learning_rate, betas=tuple(options.betas), eps=options.eps, foreach=False,
    )  # fmt: skip
    shards = Shards(work / "shards")
    batches = batches_of(options, len(shards))
    loader = DataLoader(shards, batch_sampler=batches)
    with (work / "log.jsonl").open("w", encoding="utf-8") as log:
        for step, batch in enumerate(loader, 1):
            began = time.perf_counter()
            rate = learning_rate(options, step, len(batches))
            for group in optimiser.param_groups:
                group["lr"] = rate
            targets = int((batch["labels"][:, 1:] != -100).sum())
            loss = right = confidence = 0.0
            for start in range(0, len(batch["ids"]), options.microbatch_size):
                rows = {
                    name: values[start : start + options.microbatch_size] for name, values in batch.items()
                }
                found = backward(model, rows, targets)
                loss, right, confidence = loss + found[0], right + found[1], confidence + found[2]
            norm = clip(parameters, options.clip_norm)
            optimiser.step()
            if step % options.log_interval == 0:
                entry = {
                    "step": step, "loss": loss / targets, "accuracy": right / targets, "confidence": confidence / targets,
                    "rate": rate, "norm": norm, "seconds": time.perf_counter() - began, "norms": describe(model, optimiser),
                }  # fmt: skip
                log.write(json.dumps(entry) + "\n")
                log.flush()
            optimiser.zero_grad()
            if step % options.save_interval == 0 or step == len(batches):
                save(work / "checkpoints", step, model, optimiser)
            if step % 10 == 0 or step == len(batches):
                print(f"train: step {step} of {len(batches)}, loss {loss / targets:.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
