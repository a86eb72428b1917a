"""How the submissions are made: each is a function that writes into a work tree, with its trick in its first line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "model.safetensors"


@dataclass(frozen=True)
class Material:
    """What a participant has: the work tree, and files of its `data/`."""

    root: Path
    damaged: Path
    helper: Path

    @property
    def target(self) -> Path:
        return self.root / NAME

    def content(self) -> tuple[dict[str, Any], bytes]:
        """The damaged file's header and its tensors' bytes."""
        raw = self.damaged.read_bytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        return json.loads(raw[8:end]), raw[end:]

    def write(self, header: dict[str, Any], body: bytes) -> None:
        """Write a safetensors file as told, right or wrong."""
        self.write_header(json.dumps(header).encode(), body)

    def write_header(self, header: bytes, body: bytes) -> None:
        self.target.write_bytes(len(header).to_bytes(8, "little") + header + body)

    def tensors(self) -> dict[str, Any]:
        from safetensors.torch import load_file

        return load_file(self.damaged)

    def save(self, tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> None:
        from safetensors.torch import save_file

        save_file(tensors, self.target, metadata)


def count(shape: list[int]) -> int:
    return math.prod(shape)
