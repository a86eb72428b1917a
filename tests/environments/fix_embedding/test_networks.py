"""Models of transformers: their layout, and what llama.cpp's files hold of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from environments.contract import AssetsMissing
from environments.fix_embedding import networks
from environments.fix_embedding.gguf_model import read_gguf
from environments.fix_embedding.helper_training import helper_sizes
from environments.fix_embedding.settings import Family
from tests.environments.fix_embedding.models import gpt2_sizes, llama_sizes
from tests.environments.fix_embedding_small import Small


@pytest.mark.parametrize("sizes", [gpt2_sizes(), llama_sizes()], ids=["gpt2", "llama"])
def test_the_layout_of_a_model_of_transformers_has_the_tied_matrix_once(sizes: dict[str, Any]) -> None:
    network = networks.transformers_network(sizes)
    assert network.layout[network.embedding] == (300, 16)
    assert network.head not in network.layout
    assert networks.transformers_network(helper_sizes(sizes, 1, 64)).layout[network.embedding] == (300, 64)


def test_an_untied_model_is_refused_at_prepare() -> None:
    with pytest.raises(AssetsMissing, match="output matrix of its own"):
        networks.transformers_network({**llama_sizes(), "tie_word_embeddings": False})


def test_assets_prepared_before_there_was_a_layout_file_are_checked_all_the_same(
    small: Small, tmp_path: Path
) -> None:
    written = networks.read_layout(Family.MINIGPT, small.folders.public, small.folders.protected)
    made = networks.read_layout(Family.MINIGPT, small.folders.public, tmp_path)
    assert written == made
    (tmp_path / "layout.json").write_bytes(b"{")
    with pytest.raises(AssetsMissing, match="env prepare"):
        networks.read_layout(Family.MINIGPT, small.folders.public, tmp_path)


def write_gguf(path: Path, sizes: dict[str, Any], tensors: dict[str, Any], kind: str = "llama") -> None:
    """Write a Llama as llama.cpp's converter does: its names, and query and key rows interleaved."""
    gguf = pytest.importorskip("gguf")
    names = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "embed_tokens": "token_embd", "norm": "output_norm",
    }  # fmt: skip
    writer = gguf.GGUFWriter(path, kind)
    writer.add_embedding_length(sizes["hidden_size"])
    writer.add_feed_forward_length(sizes["intermediate_size"])
    writer.add_block_count(sizes["num_hidden_layers"])
    writer.add_head_count(sizes["num_attention_heads"])
    writer.add_head_count_kv(sizes["num_key_value_heads"])
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    for name, tensor in tensors.items():
        values = tensor.float().numpy()
        parts = name.removeprefix("model.").removesuffix(".weight").split(".", 2)
        place = f"blk.{parts[1]}." if parts[0] == "layers" else ""
        if (own := parts[-1]) in {"self_attn.q_proj", "self_attn.k_proj"}:
            heads = sizes["num_attention_heads" if "q_proj" in own else "num_key_value_heads"]
            rows, columns = values.shape
            values = (
                values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
            )
        writer.add_tensor(f"{place}{names[own]}.weight", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_llama_in_a_gguf_file_is_read_as_transformers_computes_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = networks.transformers_network({**llama_sizes(), "rope_theta": 10_000.0, "rms_norm_eps": 1e-5})
    tensors = {name: torch.randn(shape).half() * 0.2 for name, shape in network.layout.items()}
    write_gguf(tmp_path / "model.gguf", llama_sizes(), tensors)
    sizes, found = read_gguf(tmp_path / "model.gguf")
    ids = torch.randint(300, (2, 12))
    assert networks.transformers_network(sizes).layout == network.layout
    with torch.no_grad():
        first = network.build(tensors)(ids)
        second = networks.transformers_network(sizes).build(found)(ids)
    assert torch.allclose(first, second, atol=1e-4)


def test_a_gguf_file_of_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", llama_sizes(), {"model.norm.weight": torch.ones(16)}, kind="mamba")
    with pytest.raises(AssetsMissing, match="mamba"):
        read_gguf(tmp_path / "model.gguf")
