"""What the tests of fix_embedding share: small models, texts, and a profile whose models are folders in the hub's layout."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from environments import registry
from environments.contract import AssetFolders, Limits, Needs, PrepareRequest, Profile, Submission
from environments.fix_embedding.environment import environment
from environments.kit.bpe import train_bpe
from environments.kit.minigpt.network import build
from environments.sealing import PUBLIC_PASSPHRASE
from tests.environments.fix_embedding_small import FEW, quiet

FOUND = registry.find("fix_embedding")


FOLDER = FOUND.folder


TINY = {"vocabulary": 40, "context": 16, "layers": 1, "heads": 1, "width": 8}


WORDS = (
    "the",
    "union",
    "of",
    "these",
    "states",
    "and",
    "its",
    "people",
    "hold",
    "peace",
    "with",
    "nations",
    "trade",
)


def tiny_model() -> Any:
    torch.manual_seed(0)
    model = build(TINY)
    model.initialise()
    return model.eval()


def texts(count: int) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, 60)) for _ in range(count)]


def gpt2_sizes(layers: int = 2) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "vocab_size": 300,
        "n_positions": 32,
        "n_embd": 16,
        "n_layer": layers,
        "n_head": 2,
    }


def llama_sizes() -> dict[str, Any]:
    return {
        "model_type": "llama", "vocab_size": 300, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True, "head_dim": 8,
    }  # fmt: skip


def hub_request(folder: Path, **pretrained: object) -> PrepareRequest:
    """A profile whose models, tokenizer and corpus are folders in the hub's layout."""
    from datasets import Dataset
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    written = texts(80)
    own = train_bpe(written, 300)
    for name, layers in (("large", 2), ("helper", 1)):
        torch.manual_seed(layers)
        AutoModelForCausalLM.from_config(AutoConfig.for_model(**gpt2_sizes(layers))).save_pretrained(
            folder / name
        )
        PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<end>").save_pretrained(folder / name)
    (folder / "dataset").mkdir()
    Dataset.from_dict({"text": written}).to_parquet(folder / "dataset" / "train-00000-of-00001.parquet")
    settings = {
        "family": "transformers", "corpora": ["hub"], "hub_dataset": str(folder / "dataset"), "hub_documents": 70,
        "vocabulary": 300, "length": 16, "log_constant": 1.0, **FEW,
        "pretrained": {"model": str(folder / "large"), "helper": str(folder / "helper"), **pretrained},
    }  # fmt: skip
    profile = Profile(summary="s", needs=Needs(), limits=Limits(score_seconds=60), settings=settings)
    places = AssetFolders(public=folder / "public", protected=folder / "protected")
    return PrepareRequest(profile_name="paper", profile=profile, assets=places, passphrase=PUBLIC_PASSPHRASE)


def work_tree(request: PrepareRequest, root: Path) -> Path:
    for name, source in environment.starter(request).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / name)
    return root


def score_tree(request: PrepareRequest, root: Path, scratch: Path) -> Any:
    scratch.mkdir(exist_ok=True)
    given = Submission(
        root=root,
        profile_name="paper",
        profile=request.profile,
        assets=request.assets,
        scratch=scratch,
        seed=1,
    )
    return environment.score(given, quiet)
