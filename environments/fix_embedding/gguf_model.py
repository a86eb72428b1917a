"""Reads a tied Llama model out of a GGUF file: sizes as `transformers` knows them, weights dequantised to float16."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import AssetsMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_OUTSIDE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_INSIDE = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_SIZES = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
}


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model's sizes and its tensors.

    Raises:
        AssetsMissing: `gguf` is not installed, or the file holds another kind of model.
    """
    import torch

    try:
        from gguf import GGUFReader, dequantize
    except ImportError as error:
        raise AssetsMissing(
            f"{path} needs the package gguf: pip install gguf, or in the checkout pip install '.[gpu]' ({error})"
        ) from error
    reader = GGUFReader(path)
    kind = _field(reader, "general.architecture", path)
    names = [tensor.name for tensor in reader.tensors]
    if kind != "llama" or "output.weight" in names:
        raise AssetsMissing(
            f"{path} holds a model of kind {kind!r}; only a Llama whose output matrix is tied is read"
        )
    sizes: dict[str, Any] = {key: _field(reader, f"llama.{name}", path) for key, name in _SIZES.items()}
    heads = {"attn_q": sizes["num_attention_heads"], "attn_k": sizes["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
        if part in heads:
            values = _halves_apart(values, heads[part])
        tensors[_name(tensor.name, path)] = torch.from_numpy(values.copy()).half()
    sizes |= {
        "model_type": "llama",
        "tie_word_embeddings": True,
        "vocab_size": len(tensors["model.embed_tokens.weight"]),
    }
    return sizes, tensors


def _name(name: str, path: Path) -> str:
    """Return what `transformers` calls a tensor."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    parts = name.split(".")
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in _INSIDE or parts[3] != "weight":
        raise AssetsMissing(
            f"{path} holds the tensor {name}, which a Llama of `transformers` has no place for"
        )
    return f"model.layers.{parts[1]}.{_INSIDE[parts[2]]}.weight"


def _halves_apart(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return rows in the order of `transformers`: GGUF interleaves the two halves that rotate together."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _field(reader: Any, name: str, path: Path) -> Any:
    found = reader.get_field(name)
    if found is None:
        raise AssetsMissing(f"{path} does not say its {name}")
    return found.contents()
