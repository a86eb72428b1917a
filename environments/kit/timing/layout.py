"""Says where the inputs and outputs of timed calls lie in shared memory; both processes compute the same places from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ALIGNMENT = 4096
_SIZES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip

INPUTS = "timing-inputs"
OUTPUTS = "timing-outputs"
FLAGS = "timing-flags"
"""Names of the descriptors that a timing worker inherits."""

ARMED, GO, DONE = 0, 1, 2
"""Words of the flags: each holds the number of the interval it was last set for."""
FLAG_BYTES = 4096


@dataclass(frozen=True)
class Block:
    """One array: its element type and the most elements it ever has."""

    dtype: str
    elements: int

    @property
    def stride(self) -> int:
        """Bytes from one slot's block to the next."""
        return -(-max(1, self.elements) * _SIZES[self.dtype] // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class Layout:
    """The arrays of one call, repeated for `slots` calls that are timed together."""

    inputs: tuple[Block, ...]
    output: Block
    slots: int

    @property
    def input_bytes(self) -> int:
        return self.slots * sum(block.stride for block in self.inputs)

    @property
    def output_bytes(self) -> int:
        return self.slots * self.output.stride

    def input_place(self, slot: int, index: int) -> int:
        """Return the offset of input `index` of `slot` in the input region."""
        per_slot = sum(block.stride for block in self.inputs)
        return slot * per_slot + sum(block.stride for block in self.inputs[:index])

    def output_place(self, slot: int) -> int:
        return slot * self.output.stride

    def as_json(self) -> dict[str, Any]:
        blocks = [*self.inputs, self.output]
        return {"blocks": [[b.dtype, b.elements] for b in blocks], "slots": self.slots}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Layout:
        blocks = [Block(dtype, elements) for dtype, elements in described["blocks"]]
        return cls(tuple(blocks[:-1]), blocks[-1], described["slots"])


@dataclass(frozen=True)
class Shapes:
    """The shapes of one call; each has at most its block's elements."""

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {"inputs": [list(s) for s in self.inputs], "output": list(self.output)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Shapes:
        return cls(tuple(tuple(s) for s in described["inputs"]), tuple(described["output"]))


def elements(shape: Sequence[int]) -> int:
    return math.prod(shape)


def size_of(dtype: str) -> int:
    """Return the bytes of one element."""
    return _SIZES[dtype]
