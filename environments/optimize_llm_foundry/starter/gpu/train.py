"""Stage 2: trains the model on the shards with FSDP, on any number of cards (or processes without one)."""

import json
import lzma
import math
import os
import random
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from options import read_options
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
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
    if options.schedule == "constant":
        return options.learning_rate
    progress = (step - options.warmup_steps - 1) / max(1, steps - options.warmup_steps)
    falling = 0.5 * (1 + math.cos(math.pi * progress)) if options.schedule == "cosine" else 1 - progress
    return options.learning_rate * (options.final_lr_share + (1 - options.final_lr_share) * falling)


def load_model(options, mesh):
    """Return the model with fp32 weights, divided over the processes layer by layer."""
    model = AutoModelForCausalLM.from_pretrained(
        options.model, dtype=torch.float32, attn_implementation="eager"
    )
    model.train()
    if options.activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    compute = {"fp32": torch.float32, "bf16": torch.bfloat16}[options.precision]
    policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32)
    for layer in model.get_decoder().layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    return model


def backward(model, rows, share):
    """Add the gradient of one microbatch; the loss is a sum over tokens times `share`."""
    logits = model(input_ids=rows["ids"], attention_mask=rows["attention"], use_cache=False).logits.float()
    predicted, labels = logits[:, :-1], rows["labels"][:, 1:]  # [b, t, vocabulary], [b, t]
    loss = cross_entropy(predicted.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    (loss * share).backward()
    known = labels != -100
    right = ((predicted.argmax(-1) == labels) & known).sum()
    return loss.item(), right.item()


def whole(tensor):
    """Return a number that every process has a part of."""
    return float(tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor)


def clip(parameters, limit):
    """Scale the gradients so that their norm together is at most `limit`; return the norm it was."""
    total = math.sqrt(sum(whole(p.grad.norm()) ** 2 for p in parameters))
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
            "weight": whole(parameter.detach().norm()),
            "gradient": whole(parameter.grad.norm()),
            "moment": whole(state["exp_avg"].norm()),
        }
    return norms


def save(folder, step, model, optimiser, rank):
    """Write a checkpoint that another number of processes can read."""
    weights, moments = get_state_dict(model, optimiser)
    dcp.save({"model": weights, "optimiser": moments}, checkpoint_id=str(folder / f"step-{step:06d}"))
    if rank == 0:
        (folder / "latest").write_text(f"step-{step:06d}")


def train(options, rank, world, device):
    work = Path(options.work)
    model = load_model(options, init_device_mesh(device.type, (world,)))
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
    (work / "checkpoints").mkdir(exist_ok=True)
    for step, numbers in enumerate(batches, 1):
        began = time.perf_counter()
        rate = learning_rate(options, step, len(batches))
        for group in optimiser.param_groups:
            group["lr"] = rate
        rows = [shards[number] for number in numbers]
        targets = sum(int((row["labels"][1:] != -100).sum()) for row in rows)
        # Every process takes the same number of microbatches, or collective calls would not match; blanks fill up.
        each = math.ceil(len(rows) / world / options.microbatch_size) * options.microbatch_size
        blank = {**rows[0], "labels": torch.full_like(rows[0]["labels"], -100)}
        mine = (rows + [blank] * (each * world - len(rows)))[rank * each : (rank + 1) * each]
        loss = right = 0.0
        for start in range(0, each, options.microbatch_size):
            part = mine[start : start + options.microbatch_size]
            batch = {name: torch.stack([row[name] for row in part]).to(device) for name in blank}
            # FSDP averages gradients over the processes; this sums them.
            found = backward(model, batch, world / targets)
            loss, right = loss + found[0], right + found[1]
        norm = clip(parameters, options.clip_norm)
        optimiser.step()
        sums = torch.tensor([loss, right], device=device)
        dist.all_reduce(sums)
        if step % options.log_interval == 0:
            entry = {
                "step": step, "loss": float(sums[0]) / targets, "accuracy": float(sums[1]) / targets, "rate": rate,
                "norm": norm, "seconds": time.perf_counter() - began, "norms": describe(model, optimiser),
            }  # fmt: skip
            if rank == 0:
                with (work / "log.jsonl").open("a", encoding="utf-8") as log:
                    log.write(json.dumps(entry) + "\n")
        optimiser.zero_grad()
        if step % options.save_interval == 0 or step == len(batches):
            save(work / "checkpoints", step, model, optimiser, rank)
        if rank == 0 and (step % 8 == 0 or step == len(batches)):
            print(f"train: step {step} of {len(batches)}, loss {float(sums[0]) / targets:.4f}", flush=True)


def main(config):
    options = read_options(config)
    torch.set_num_threads(options.threads)
    on_card = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_card else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_card else torch.device("cpu")
    if on_card:
        torch.cuda.set_device(device)
    try:
        train(options, dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
