"""Takes the folder that a run has left and checks that it is plain files of the right model."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.worker.output import printable

if TYPE_CHECKING:
    from torch import Tensor

Origin = tuple[int, int, int, int]
"""Device, inode, size and time of change: an inode number alone is given to a new file as soon as the old one is deleted."""
CONFIG = "config.json"
_SUFFIXES = (".json", ".safetensors", ".txt", ".model", ".jinja", ".md")
_MOST_FILES = 200
_MOST_CONFIG = 2**20
_MOST_HEADER = 2**22
"""Bytes of config.json, and of what a safetensors file says about its tensors: far more than any model needs."""
_CHUNK = 2**20
_FREE_KEYS = {"transformers_version", "_name_or_path", "architectures", "dtype", "torch_dtype", "use_cache"}
"""Of config.json: they say nothing about the network, or other checks cover them."""


class ResultRefused(Exception):
    """The result is not what it should be; the text is for the participant."""


def take(folder: Path, keep: Path, most_bytes: int, known: frozenset[Origin] = frozenset()) -> None:
    """Copy the plain files of `folder`, in which nobody writes any more, into `keep`, which is made for us alone.

    Nothing is followed or shared: links, other names of a file, and files in `known` are refused.

    Raises:
        ResultRefused: names the first file that will not do.
    """
    names = _plain_names(folder)
    keep.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    keep.mkdir()
    left = most_bytes
    for name in names:
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise ResultRefused(f"{folder.name}/{name} cannot be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as source, (keep / name).open("wb") as target:
            status = os.fstat(source.fileno())
            _refuse_shared(status, f"{folder.name}/{name}", known)
            while content := source.read(_CHUNK):
                left -= len(content)
                if left < 0:
                    raise ResultRefused(f"{folder.name}/ holds more than {most_bytes / 2**20:.0f} MB")
                target.write(content)


def files_below(folder: Path) -> frozenset[Origin]:
    """Return what identifies every file that a run starts with."""
    found = (path.lstat() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return frozenset(map(_origin, found))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return every tensor of the folder's safetensors; exact copies under another name are dropped.

    Raises:
        ResultRefused: there is none, one is damaged, or a name comes twice.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ResultRefused(f"{folder.name}/ holds no .safetensors file")
    weights: dict[str, Tensor] = {}
    for file in files:
        if (size := _header_bytes(file)) > _MOST_HEADER and size < file.stat().st_size:
            raise ResultRefused(
                f"{folder.name}/{file.name} describes its tensors in {size:,} bytes, at most {_MOST_HEADER:,} are read: "
                "save the model's weights and nothing else"
            )
        try:
            found = load_file(str(file))
        except (SafetensorError, OSError, ValueError, RuntimeError) as error:
            said = printable(str(error), 200)
            raise ResultRefused(f"{folder.name}/{file.name} is no whole safetensors file: {said}") from error
        if twice := weights.keys() & found.keys():
            raise ResultRefused(f"{folder.name}/ holds {printable(min(twice), 80)} twice")
        weights.update(found)
    return weights


def check_weights(
    found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], tied: Mapping[str, str]
) -> dict[str, Tensor]:
    """Return the weights under the names of `wanted`, which they must have exactly.

    `tied` names further entries that may stand there when they equal another (a tied output matrix).

    Raises:
        ResultRefused: a name, shape, dtype or value that will not do.
    """
    if missing := wanted.keys() - found.keys():
        raise ResultRefused(f"the weights lack {min(missing)} ({len(missing)} missing)")
    for name, tensor in wanted.items():
        if not _alike(found[name], tensor):
            raise ResultRefused(
                f"{name} is {found[name].dtype} {list(found[name].shape)}, expected {tensor.dtype} {list(tensor.shape)}"
            )
        if not bool(found[name].isfinite().all()):
            raise ResultRefused(f"{name} holds NaN or infinity")
    for name in sorted(found.keys() - wanted.keys()):
        other = wanted.get(tied.get(name, ""))
        if other is None:
            raise ResultRefused(f"the weights hold {printable(name, 80)!r}, which the base model has not")
        if not _alike(found[name], other) or not found[name].equal(found[tied[name]]):
            raise ResultRefused(
                f"{name} differs from {tied[name]}, to which the base model ties it: leave it out"
            )
    return {name: found[name] for name in wanted}


def _alike(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors have one shape and one dtype; only then can torch compare their numbers."""
    return first.shape == second.shape and first.dtype == second.dtype


def check_config(folder: Path, reference: Path) -> None:
    """Compare config.json with the reference's.

    Raises:
        ResultRefused: names the first key that differs.
    """
    found, wanted = (_read_config(place) for place in (folder, reference))
    for key in sorted((found.keys() | wanted.keys()) - _FREE_KEYS):
        if found.get(key) != wanted.get(key) and not _same_by_default(key, found, wanted):
            raise ResultRefused(
                f"{CONFIG} says {printable(key, 40)} = {json.dumps(found.get(key))[:60]}, expected {json.dumps(wanted.get(key))[:60]}"
            )


def _plain_names(folder: Path) -> list[str]:
    try:
        status = folder.lstat()
    except OSError:
        raise ResultRefused(f"finetune.sh left no folder {folder.name}/") from None
    if not stat.S_ISDIR(status.st_mode):
        raise ResultRefused(f"{folder.name} is not a folder of its own (links do not count)")
    try:
        kinds = {path.name: path.lstat().st_mode for path in islice(folder.iterdir(), _MOST_FILES + 1)}
    except OSError as error:
        raise ResultRefused(f"{folder.name}/ cannot be read: {error.strerror}") from error
    if len(kinds) > _MOST_FILES:
        raise ResultRefused(f"{folder.name}/ holds more than {_MOST_FILES} files")
    for name in sorted(kinds):
        if not name.isprintable():
            shown = printable(name, 80)
            raise ResultRefused(
                f"{folder.name}/ holds a file whose name cannot be printed ({shown!r}): rename it"
            )
        if not stat.S_ISREG(kinds[name]):
            raise ResultRefused(f"{folder.name}/{name} is not a plain file (links and folders do not count)")
        if not name.endswith(_SUFFIXES):
            raise ResultRefused(
                f"{folder.name}/{name}: only {', '.join(_SUFFIXES)} files may be there, weights as safetensors"
            )
    if CONFIG not in kinds:
        raise ResultRefused(f"{folder.name}/ holds no {CONFIG}")
    return sorted(kinds)


def _origin(status: os.stat_result) -> Origin:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _refuse_shared(status: os.stat_result, name: str, known: frozenset[Origin]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ResultRefused(f"{name} is not a plain file")
    if status.st_nlink != 1 or _origin(status) in known:
        raise ResultRefused(f"{name} is another name of a file that lies elsewhere; write a file of its own")


def _header_bytes(file: Path) -> int:
    with file.open("rb") as opened:
        return int.from_bytes(opened.read(8), "little")


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        if (size := (folder / CONFIG).stat().st_size) > _MOST_CONFIG:
            raise ResultRefused(f"{CONFIG} has {size:,} bytes; a model's has a few thousand")
        found = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ResultRefused(f"{CONFIG} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ResultRefused(f"{CONFIG} is no JSON object")
    return found


def _same_by_default(key: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a key that only one of two configs spells out has the value that the architecture gives it anyway."""
    if key in found and key in wanted:
        return False
    defaults = _defaults(str(wanted.get("model_type")))
    spelt = found if key in found else wanted
    return key in defaults and spelt[key] == defaults[key]


def _defaults(model_type: str) -> dict[str, Any]:
    from transformers import AutoConfig

    try:
        values: dict[str, Any] = AutoConfig.for_model(model_type).to_dict()
    except (ValueError, KeyError):
        return {}
    return values
