"""Reads finetune.yaml."""

from dataclasses import dataclass, fields
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Options:
    """One field for each line of finetune.yaml."""

    model: str
    data: str
    output: str
    seed: int
    max_length: int
    loss_on: str
    epochs: int
    max_steps: int
    shuffle: bool
    batch_size: int
    learning_rate: float
    schedule: str
    warmup_steps: int
    final_lr_share: float
    betas: tuple
    eps: float
    weight_decay: float
    clip_norm: float
    precision: str
    work: str
    microbatch_size: int
    activation_checkpointing: bool
    threads: int
    rows_per_shard: int
    save_interval: int
    log_interval: int


def read_options(path):
    with Path(path).open(encoding="utf-8") as file:
        values = yaml.safe_load(file)
    names = {field.name for field in fields(Options)}
    if names != set(values):
        raise SystemExit(
            f"{path}: missing {sorted(names - set(values))}, unknown {sorted(set(values) - names)}"
        )
    return Options(**values)
