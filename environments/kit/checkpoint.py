"""Reads a submitted checkpoint: bytes checked against the one layout that is accepted, before anything is made of them."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import Problem
from environments.worker.output import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

_TYPES = {"F16": ("<f2", 2, "half"), "F32": ("<f4", 4, "float")}
"""safetensors' name -> NumPy's, bytes, and the method of a tensor that gives it."""
_LENGTH_FIELD = 8
_SLACK = 2**20
"""Bytes that a header may take beyond the tensors: names, offsets, a few words of metadata."""
_SHOWN = 3

Layout = Mapping[str, tuple[int, ...]]
"""Tensor name -> shape."""


@dataclass(frozen=True)
class Wanted:
    """The one checkpoint that is accepted."""

    layout: Layout
    """Exactly the tensors that must be there."""
    head: str | None = None
    """What an untied output matrix would be called, so that it can be explained."""
    model: str = "the model"
    """What messages call it."""
    dtype: str = "F16"
    """Of every tensor: `F16` or `F32`."""

    @property
    def content_bytes(self) -> int:
        return sum(self.bytes_of(name) for name in self.layout)

    def bytes_of(self, name: str) -> int:
        return _TYPES[self.dtype][1] * math.prod(self.layout[name])


class CheckpointRefused(Exception):
    """The file is not the checkpoint that was wanted; `problem` is for the participant."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}; {hint}")
        self.problem = Problem(what=what, hint=hint)


def read_checkpoint(root: Path, name: str, wanted: Wanted) -> dict[str, Tensor]:
    """Return what `read_arrays` does, as tensors."""
    import torch

    return {key: torch.from_numpy(array) for key, array in read_arrays(root, name, wanted).items()}


def read_arrays(root: Path, name: str, wanted: Wanted) -> dict[str, NDArray[np.floating]]:
    """Return the tensors of `root/name`, owning their memory; needs no torch.

    The file is opened once, without following links, and read whole: nobody can change it between its check and its use.

    Raises:
        CheckpointRefused: with what to do about it.
    """
    import numpy as np

    content, size = _read_whole(root, name, wanted)
    header, start = _header(content, name, size)
    spans = _spans(header, name, wanted, size - start)
    kind = np.dtype(_TYPES[wanted.dtype][0])
    arrays = {}
    for key, begin in spans.items():
        shape = wanted.layout[key]
        flat = np.frombuffer(content, dtype=kind, count=math.prod(shape), offset=start + begin)
        if not np.isfinite(flat).all():
            raise CheckpointRefused(
                f"{name}: tensor {key} holds NaN or infinity",
                f"{kind.name} ends at {np.finfo(kind).max:.5g}: look for a diverged training run, or for numbers too large",
            )
        arrays[key] = flat.reshape(shape)
    return arrays


def _read_whole(root: Path, name: str, wanted: Wanted) -> tuple[bytearray, int]:
    """Return the file's bytes and its size; a link or a device is refused before it is read.

    Of a file that is too large only the beginning is returned: its header tells what does not belong there.
    """
    path, most = root / name, wanted.content_bytes + _LENGTH_FIELD + _SLACK
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise CheckpointRefused(
            f"there is no {name}", f"save {wanted.model}'s weights as {name} in the work tree"
        ) from None
    except OSError as error:
        what = "is a link" if path.is_symlink() else f"cannot be opened ({error.strerror})"
        raise CheckpointRefused(
            f"{name} {what}", f"{name} must be a plain file of its own: copy it into the work tree"
        ) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise CheckpointRefused(
            f"{name} is not a plain file", f"save {wanted.model}'s weights as one safetensors file"
        )
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = status.st_size
        content = bytearray(size if size <= most else min(size, _LENGTH_FIELD + _SLACK))
        done, view = 0, memoryview(content)
        while done < len(content) and (count := file.readinto(view[done:])):
            done += count
        if done < len(content):
            raise CheckpointRefused(
                f"{name} became shorter while it was read", "submit when nothing writes to it any more"
            )
    return content, size


def _header(content: bytearray, name: str, size: int) -> tuple[dict[str, Any], int]:
    """Return the decoded header and where the tensors' bytes begin, in a file of `size` bytes."""
    hint = "save it with `safetensors.torch.save_file` to another name, then rename it, so that it is never half written"
    length = int.from_bytes(content[:_LENGTH_FIELD], "little")
    if size < _LENGTH_FIELD or length > size - _LENGTH_FIELD:
        pickled = content[:2] == b"PK" or content[:1] == b"\x80"
        what = (
            "is a pickle, which can carry code and is never opened"
            if pickled
            else "is not a whole safetensors file"
        )
        raise CheckpointRefused(
            f"{name} {what}", "save it with `safetensors.torch.save_file`" if pickled else hint
        )
    if length > _SLACK:
        raise CheckpointRefused(
            f"{name}: its header has {length:,} bytes, of which at most {_SLACK:,} are read",
            "leave long metadata out: save the model's tensors and nothing else",
        )
    start = _LENGTH_FIELD + length
    try:
        header = json.loads(content[_LENGTH_FIELD:start], object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise CheckpointRefused(f"{name}: its header cannot be read ({error})", hint) from error
    if not isinstance(header, dict):
        raise CheckpointRefused(f"{name}: its header is not a table of tensors", hint)
    return header, start


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name stands in it twice")
    return table


def _spans(header: dict[str, Any], name: str, wanted: Wanted, size: int) -> dict[str, int]:
    """Return where each tensor begins; names, dtypes, shapes and offsets must be those of the layout, without gaps."""
    found = {key: entry for key, entry in header.items() if key != "__metadata__"}
    _same_names(set(found), name, wanted)
    spans: dict[str, tuple[int, int]] = {}
    for key, shape in wanted.layout.items():
        entry = found[key]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise CheckpointRefused(
                f"{name}: the header's entry of {key} is malformed",
                "save it with `safetensors.torch.save_file`",
            )
        if entry["dtype"] != wanted.dtype:
            raise CheckpointRefused(
                f"{name}: tensor {key} is {printable(entry['dtype'], 20)!r}, not {wanted.dtype}",
                f"save `tensor.{_TYPES[wanted.dtype][2]}()`",
            )
        if entry["shape"] != list(shape):
            raise CheckpointRefused(
                f"{name}: tensor {key} has the shape {_shown_shape(entry['shape'])}, not {list(shape)}",
                "the architecture is fixed: only the numbers may change",
            )
        spans[key] = _offsets(entry["data_offsets"], key, name)
    end = 0
    for key, (begin, stop) in sorted(spans.items(), key=lambda item: item[1]):
        if begin != end or stop - begin != wanted.bytes_of(key):
            raise CheckpointRefused(
                f"{name}: tensor {key} overlaps another or leaves a gap",
                "save it with `safetensors.torch.save_file`",
            )
        end = stop
    if end != size:
        what = (
            f"ends {end - size:,} bytes too early"
            if end > size
            else f"has {size - end:,} bytes after its last tensor"
        )
        raise CheckpointRefused(
            f"{name} {what}", "save to another name, then rename; submit when the file is whole"
        )
    return {key: begin for key, (begin, _) in spans.items()}


def _shown_shape(value: Any) -> str:
    whole = isinstance(value, list) and all(type(part) is int and abs(part) < 2**63 for part in value)
    return f"{value!s:.60}" if whole else "(no list of whole numbers)"


def _same_names(found: set[str], name: str, wanted: Wanted) -> None:
    names = set(wanted.layout)
    if wanted.head is not None and wanted.head in found - names:
        raise CheckpointRefused(
            f"{name} holds {wanted.head}, an output matrix of its own",
            "in this model the output matrix is the embedding, and only the embedding is read: leave it out, and mind that "
            "training an untied copy leaves the embedding as it was",
        )
    if missing := sorted(names - found):
        raise CheckpointRefused(
            f"{name} lacks {_some(missing)}",
            f"save all of {wanted.model}'s tensors under the names they came with",
        )
    if extra := sorted(found - names):
        raise CheckpointRefused(
            f"{name} holds {_some(extra)} beyond {wanted.model}",
            f"save {wanted.model}'s tensors and nothing else",
        )


def _offsets(value: Any, key: str, name: str) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int and part >= 0 for part in value):
        return value[0], value[1]
    raise CheckpointRefused(
        f"{name}: the offsets of {key} are malformed", "save it with `safetensors.torch.save_file`"
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"{name[:80]!r}" for name in names[:_SHOWN]) + more
