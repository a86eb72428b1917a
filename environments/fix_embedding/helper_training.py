"""Trains the small healthy model of profiles for which none exists: the large one's kind, few layers, narrow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.contract import Progress, ReportProgress
from environments.fix_embedding.networks import require_device, transformers_network
from environments.fix_embedding.settings import FixSettings
from environments.kit.tokens import read_tokens

_ROWS = 16
_RATE = 1e-3
_SEED = 20263


def helper_sizes(large: Mapping[str, Any], layers: int, width: int) -> dict[str, Any]:
    """Return a configuration of the same kind and vocabulary, smaller."""
    heads = max(1, width // 64)
    if large["model_type"] == "gpt2":
        return {**large, "n_layer": layers, "n_embd": width, "n_head": heads, "n_inner": None}
    return {
        **large, "num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 3 * width,
        "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": width // heads, "layer_types": None,
    }  # fmt: skip


def train_helper(
    large: Mapping[str, Any], settings: FixSettings, tokens_file: Path, target: Path, report: ReportProgress
) -> dict[str, Any]:
    """Train on the participant's own tokens, write float16 weights to `target`, and return the sizes."""
    import torch
    from safetensors.torch import save_file
    from torch.nn import functional

    require_device(settings.device)
    sizes = helper_sizes(large, settings.pretrained.helper_layers, settings.pretrained.helper_width)
    network = transformers_network(sizes)
    torch.manual_seed(_SEED)
    model: Any = network.random().to(settings.device).train()
    tokens = read_tokens(tokens_file)
    chance = torch.Generator().manual_seed(_SEED)
    steps = max(1, settings.pretrained.helper_tokens // (_ROWS * settings.length))
    kind = torch.device(settings.device).type
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=_RATE, betas=(0.9, 0.98), weight_decay=0.1, fused=kind == "cuda"
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps + 1, pct_start=0.05)
    for step in range(steps):
        starts = torch.randint(len(tokens) - settings.length, (_ROWS,), generator=chance).tolist()
        cut = [torch.from_numpy(tokens[s : s + settings.length + 1].astype("int64")) for s in starts]
        ids = torch.stack(cut).to(settings.device)  # [rows, length + 1]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            logits = model(ids[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 0:
            report(Progress(stage=f"training the helper (loss {loss.item():.2f})", fraction=step / steps))
    part = target.with_name(target.name + ".part")
    save_file({n: p.detach().half().contiguous().cpu() for n, p in model.inner.named_parameters()}, part)
    part.replace(target)
    return sizes
