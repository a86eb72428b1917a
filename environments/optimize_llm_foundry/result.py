"""Takes the folder that a run has left and checks that it is plain files of the right model."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "config.json"
_SUFFIXES = (".json", ".safetensors", ".txt", ".model", ".jinja", ".md")
_MOST_FILES = 200
_CHUNK = 2**20
_FREE_KEYS = {"transformers_version", "_name_or_path", "architectures", "dtype", "torch_dtype", "use_cache"}
"""Of config.json: they say nothing about the network, or other checks cover them."""


class ResultRefused(Exception):
    """The result is not what it should be; the text is for the participant."""


def take(folder: Path, keep: Path, most_bytes: int, inodes: frozenset[tuple[int, int]] = frozenset()) -> str:
    """Copy the plain files of `folder` into the empty folder `keep`; return the digest of names and contents.

    Nothing is followed or shared: links, other names of a file, and inodes in `inodes` are refused.

    Raises:
        ResultRefused: names the first file that will not do.
    """
    names = _plain_names(folder)
    keep.mkdir(parents=True)
    left = most_bytes
    whole = hashlib.sha256()
    for name in names:
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise ResultRefused(f"{folder.name}/{name} cannot be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as source, (keep / name).open("wb") as target:
            status = os.fstat(source.fileno())
            _refuse_shared(status, f"{folder.name}/{name}", inodes)
            digest = hashlib.sha256()
            while content := source.read(_CHUNK):
                left -= len(content)
                if left < 0:
                    raise ResultRefused(f"{folder.name}/ holds more than {most_bytes / 2**20:.0f} MB")
                digest.update(content)
                target.write(content)
        whole.update(f"{name}\0{digest.hexdigest()}\n".encode())
    return whole.hexdigest()


def digest_of(folder: Path) -> str | None:
    """Return the digest as `take` computes it, or None where the folder is no longer acceptable."""
    try:
        whole = hashlib.sha256()
        for name in _plain_names(folder):
            with os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return whole.hexdigest()
    except (ResultRefused, OSError):
        return None


def inodes_below(folder: Path) -> frozenset[tuple[int, int]]:
    """Return (device, inode) of every file that a run starts with."""
    found = (path.lstat() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return frozenset((status.st_dev, status.st_ino) for status in found)


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
        try:
            found = load_file(str(file))
        except (SafetensorError, OSError, ValueError, RuntimeError) as error:
            raise ResultRefused(f"{folder.name}/{file.name} is no whole safetensors file: {error}") from error
        if twice := weights.keys() & found.keys():
            raise ResultRefused(f"{folder.name}/ holds {min(twice)} twice")
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
    kept = dict(found)
    for name, other in tied.items():
        if name in kept and name not in wanted and other in kept and kept[name].equal(kept[other]):
            del kept[name]
    if missing := wanted.keys() - kept.keys():
        raise ResultRefused(f"the weights lack {min(missing)} ({len(missing)} missing)")
    if unknown := kept.keys() - wanted.keys():
        raise ResultRefused(f"the weights hold {min(unknown)!r:.100}, which the base model has not")
    for name, tensor in wanted.items():
        if kept[name].shape != tensor.shape or kept[name].dtype != tensor.dtype:
            raise ResultRefused(
                f"{name} is {kept[name].dtype} {list(kept[name].shape)}, expected {tensor.dtype} {list(tensor.shape)}"
            )
        if not bool(kept[name].isfinite().all()):
            raise ResultRefused(f"{name} holds NaN or infinity")
    return kept


def check_config(folder: Path, reference: Path) -> None:
    """Compare config.json with the reference's.

    Raises:
        ResultRefused: names the first key that differs.
    """
    found, wanted = (_read_config(place) for place in (folder, reference))
    for key in sorted((found.keys() | wanted.keys()) - _FREE_KEYS):
        if found.get(key) != wanted.get(key) and not _same_by_default(key, found, wanted):
            raise ResultRefused(
                f"{CONFIG} says {key[:40]} = {json.dumps(found.get(key))[:60]}, expected {json.dumps(wanted.get(key))[:60]}"
            )


def _plain_names(folder: Path) -> list[str]:
    try:
        status = folder.lstat()
    except OSError:
        raise ResultRefused(f"finetune.sh left no folder {folder.name}/") from None
    if not stat.S_ISDIR(status.st_mode):
        raise ResultRefused(f"{folder.name} is not a folder of its own (links do not count)")
    names = sorted(path.name for path in folder.iterdir())
    if len(names) > _MOST_FILES:
        raise ResultRefused(f"{folder.name}/ holds {len(names)} entries")
    for name in names:
        if not stat.S_ISREG((folder / name).lstat().st_mode):
            raise ResultRefused(f"{folder.name}/{name} is not a plain file (links and folders do not count)")
        if not name.endswith(_SUFFIXES):
            raise ResultRefused(
                f"{folder.name}/{name}: only {', '.join(_SUFFIXES)} files may be there, weights as safetensors"
            )
    if CONFIG not in names:
        raise ResultRefused(f"{folder.name}/ holds no {CONFIG}")
    return names


def _refuse_shared(status: os.stat_result, name: str, inodes: frozenset[tuple[int, int]]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ResultRefused(f"{name} is not a plain file")
    if status.st_nlink != 1 or (status.st_dev, status.st_ino) in inodes:
        raise ResultRefused(f"{name} is another name of a file that lies elsewhere; write a file of its own")


def _read_config(folder: Path) -> dict[str, Any]:
    try:
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
