"""The memory that scorer and worker share: where the arrays of timed calls lie in it, and regions of it on the host."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
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

_FUTURE_WRITE = 0x10
"""F_SEAL_FUTURE_WRITE (Linux 5.1): mappings that exist may write, no later one can. Python names it from 3.13 on."""


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


class HostRegion:
    """A region of `size` bytes, mapped writable here; its descriptor is for a worker to inherit."""

    def __init__(self, name: str, size: int, *, read_only: bool) -> None:
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        # Without these two a worker could cut the region short, and our next read would be a SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self.read_only = read_only and self._forbid_writing()
        """Whether the kernel keeps the worker from writing; if not, changes must be looked for."""
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)

    def close(self) -> None:
        """Give the descriptor up; the mapping goes when the last array over it does."""
        os.close(self.descriptor)

    def _forbid_writing(self) -> bool:
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _FUTURE_WRITE)
        except OSError:
            return False
        return True


def map_region(descriptor: int, size: int, *, writable: bool) -> mmap.mmap:
    """Map an inherited region into this process, all its pages at once."""
    rights = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=rights)
