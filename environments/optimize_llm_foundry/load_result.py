"""Runs in the worker: loads a result with AutoModel and says what it found."""

from __future__ import annotations

from typing import Any


def answer(request: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the model's class, its parameters and the weights that were not in the files."""
    from transformers import AutoModel

    model, found = AutoModel.from_pretrained(
        request.places["result"], trust_remote_code=False, use_safetensors=True, output_loading_info=True
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {
        "class": type(model).__name__,
        "parameters": parameters,
        "missing": sorted(map(str, found["missing_keys"]))[:10],
        "mismatched": sorted(map(str, found["mismatched_keys"]))[:10],
    }, {}
