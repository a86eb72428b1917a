"""Writes the finetune.yaml of a run: the profile's own options, or others that a compatible script must obey."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from environments.contract import AssetsMissing
from environments.optimize_llm_foundry.settings import FoundrySettings

STARTER = Path(__file__).parent / "starter"
COMMON = "common"
FILE = "finetune.yaml"
OUTPUT = "trained_model"
MODEL, DATA, WORK = "base_model", "data/train.jsonl", "work"
_LENGTH_SHARES = (0.5, 0.375, 0.75)


def starter_options(settings: FoundrySettings) -> dict[str, Any]:
    """Return the options as participants get them.

    Raises:
        AssetsMissing: the installation lacks the file.
    """
    path = STARTER / settings.starter / FILE
    try:
        found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise AssetsMissing(f"{path} cannot be read ({error}): the installation is incomplete") from error
    return {**found, **settings.options}


def starter_files(settings: FoundrySettings) -> dict[str, Path]:
    """Return work-tree name -> file of the untouched script."""
    if settings.foundry_starter and importlib.util.find_spec("llmfoundry") is not None:
        config = STARTER / settings.starter / FILE
        return {path.name: path for path in (*_files(COMMON), *_files(settings.foundry_starter), config)}
    return {path.name: path for path in (*_files(COMMON), *_files(settings.starter))}


def whole_run(settings: FoundrySettings, seed: int) -> dict[str, Any]:
    """Return the options of the run that is timed: the starter's, with a fresh order of rows."""
    return {**starter_options(settings), "seed": seed % 2**31}


def quick_run(settings: FoundrySettings, seed: int) -> dict[str, Any]:
    """Return other options, drawn from `seed`: every line that means something differs from the starter's."""
    chance = random.Random(seed)
    usual = starter_options(settings)
    other = {
        **usual,
        "model": f"models/{chance.randrange(10**6)}",
        "data": f"rows/{chance.randrange(10**6)}.jsonl",
        "work": f"between-{chance.randrange(10**6)}",
        "seed": chance.randrange(2**31),
        "max_length": max(16, int(usual["max_length"] * chance.choice(_LENGTH_SHARES))),
        "loss_on": "all" if usual["loss_on"] == "response" else "response",
        "epochs": 2,
        "shuffle": chance.random() < 0.7,
        "batch_size": usual["batch_size"] + chance.choice((-3, -1, 1, 2)),
        "learning_rate": usual["learning_rate"] * chance.choice((0.5, 0.8, 1.25)),
        "schedule": chance.choice(("linear", "constant")),
        "warmup_steps": chance.choice((0, 1, 2)),
        "final_lr_share": chance.choice((0.0, 0.25, 0.75)),
        "betas": [chance.choice((0.85, 0.92)), chance.choice((0.97, 0.99))],
        "eps": chance.choice((1e-5, 3e-6)),
        "weight_decay": chance.choice((0.0, 0.3)),
        "clip_norm": chance.choice((0.0, 0.3)),
        "microbatch_size": chance.choice((2, 3)),
        "save_interval": chance.choice((3, 100)),
        "log_interval": chance.choice((2, 5)),
    }
    if chance.random() < 0.5:
        other["max_steps"] = 5
    if usual["precision"] == "bf16":
        other["precision"] = "fp32"
    return other


def to_yaml(options: Mapping[str, Any]) -> bytes:
    """Return the text of finetune.yaml; its lines come in another order than the starter's."""
    text: str = yaml.safe_dump(dict(options), sort_keys=True, allow_unicode=True)
    return text.encode()


def _files(folder: str) -> list[Path]:
    return [path for path in sorted((STARTER / folder).iterdir()) if path.is_file()]
