"""Makes the base model: a small Llama with seeded weights and the shipped vocabulary, in the hub's layout."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import AssetsMissing, Progress, ReportProgress
from environments.kit.bpe import SPECIAL_TOKENS
from environments.kit.sources import derived_file
from environments.optimize_llm_foundry.settings import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VOCABULARY = 4096
_SEED = 20260101
_SPREAD = 0.02
"""Standard deviation of the first weights, as GPT-2's (Radford et al. 2019)."""
_WANTED = ("*.json", "*.safetensors", "*.model", "*.txt")


def make_base_model(folder: Path, model: Model) -> None:
    """Write config, tokenizer and weights; the same model gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY,
        "hidden_size": model.width, "intermediate_size": model.feed_forward, "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads, "num_key_value_heads": model.heads, "head_dim": model.width // model.heads,
        "max_position_embeddings": model.positions, "hidden_act": "silu", "rms_norm_eps": 1e-5, "attention_bias": False,
        "mlp_bias": False, "attention_dropout": 0.0, "tie_word_embeddings": True, "initializer_range": _SPREAD,
        "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, "dtype": model.dtype,
    }  # fmt: skip
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIAL_TOKENS[0], "pad_token": SPECIAL_TOKENS[0],
        "model_max_length": model.positions, "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    _write_json(folder / "config.json", config)
    _write_json(folder / "tokenizer_config.json", tokenizer)
    shutil.copyfile(derived_file("bpe4096.json"), folder / "tokenizer.json")
    _write_weights(folder / "model.safetensors", model)


def fetch_base_model(folder: Path, repository: str, revision: str, report: ReportProgress) -> None:
    """Copy config, tokenizer and safetensors of a hub model, or of a folder in the hub's layout, into `folder`.

    Raises:
        AssetsMissing: it cannot be had, or has no safetensors.
    """
    report(Progress(stage=f"fetching {repository}"))
    if Path(repository).is_dir():
        source = Path(repository)
    else:
        from huggingface_hub import snapshot_download

        try:
            source = Path(snapshot_download(repository, revision=revision, allow_patterns=list(_WANTED)))
        except Exception as error:
            raise AssetsMissing(
                f"the model {repository} ({revision}) could not be fetched from the hub: {type(error).__name__}: {error}; "
                "it needs the network once, or set HF_HUB_CACHE to a folder that holds it"
            ) from error
    folder.mkdir(parents=True, exist_ok=True)
    found = [path for pattern in _WANTED for path in sorted(source.glob(pattern))]
    for path in found:
        shutil.copyfile(path, folder / path.name)
    if not any(folder.glob("*.safetensors")):
        _convert_weights(source, folder, repository)


def _convert_weights(source: Path, folder: Path, repository: str) -> None:
    """Rewrite a model that the hub holds in another format as safetensors."""
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(source, trust_remote_code=False)
    except Exception as error:
        raise AssetsMissing(f"{repository} holds no safetensors and cannot be converted: {error}") from error
    model.save_pretrained(folder)


def _write_weights(path: Path, model: Model) -> None:
    import torch
    from safetensors.torch import save_file

    dtype = getattr(torch, model.dtype)
    tensors = {name: torch.from_numpy(values).to(dtype) for name, values in _weights(model)}
    save_file(tensors, str(path), metadata={"format": "pt"})


def _weights(model: Model) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield (name, values); each tensor has a generator of its own, so none depends on another's size."""
    import numpy as np

    width, inner = model.width, model.feed_forward
    # Residual branches start smaller in deeper models (Radford et al. 2019).
    branch = _SPREAD / math.sqrt(2 * model.layers)
    shapes: dict[str, tuple[tuple[int, ...], float]] = {
        "model.embed_tokens.weight": ((VOCABULARY, width), _SPREAD)
    }
    for number in range(model.layers):
        block = f"model.layers.{number}"
        for name in "qkv":
            shapes[f"{block}.self_attn.{name}_proj.weight"] = ((width, width), _SPREAD)
        shapes[f"{block}.self_attn.o_proj.weight"] = ((width, width), branch)
        shapes[f"{block}.mlp.gate_proj.weight"] = ((inner, width), _SPREAD)
        shapes[f"{block}.mlp.up_proj.weight"] = ((inner, width), _SPREAD)
        shapes[f"{block}.mlp.down_proj.weight"] = ((width, inner), branch)
        shapes[f"{block}.input_layernorm.weight"] = ((width,), 0.0)
        shapes[f"{block}.post_attention_layernorm.weight"] = ((width,), 0.0)
    shapes["model.norm.weight"] = ((width,), 0.0)
    for name, (shape, spread) in shapes.items():
        seed = int.from_bytes(hashlib.sha256(f"{_SEED}/{name}".encode()).digest()[:8])
        if spread:
            yield (
                name,
                np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) * np.float32(spread),
            )
        else:
            yield name, np.ones(shape, dtype=np.float32)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
