"""What the last snapshot saw, kept beside the store so that the next one reads only what changed."""

import hashlib
import marshal
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sessions.snapshots.values import SnapshotPolicy
from sessions.snapshots.walk import Folder

_FORMAT = "1"


@dataclass(slots=True)
class Memory:
    """Valid only for the commit it was made with, on the same root folder under the same policy."""

    commit: str
    number: int
    root: tuple[int, int]
    """Device and inode of the working tree."""
    folders: dict[str, Folder] = field(default_factory=dict)


def _stamp(policy: SnapshotPolicy) -> bytes:
    """marshal's format belongs to one Python; what was skipped belongs to one policy."""
    text = f"{_FORMAT} {sys.version} ".encode() + msgspec.json.encode(policy)
    return hashlib.sha256(text).digest()


def save(file: Path, memory: Memory, policy: SnapshotPolicy) -> None:
    """Atomic, and not flushed: losing it costs time and nothing else."""
    folders = [
        (p, f.entries, f.folders, f.left_out, f.stored, tuple(f.unsure), f.files, f.bytes, f.artifacts)
        for p, f in memory.folders.items()
    ]
    body = marshal.dumps((memory.commit, memory.number, memory.root, folders))
    making = file.with_suffix(".making")
    with suppress(OSError):
        making.write_bytes(_stamp(policy) + hashlib.sha256(body).digest() + body)
        making.chmod(0o600)
        making.replace(file)


def load(file: Path, policy: SnapshotPolicy) -> Memory | None:
    """The memory in `file`, if it is whole, ours, and made by this program under this policy."""
    try:
        if file.stat().st_uid != os.geteuid():
            return None
        raw = file.read_bytes()
    except OSError:
        return None
    stamp, digest, body = raw[:32], raw[32:64], raw[64:]
    if stamp != _stamp(policy) or hashlib.sha256(body).digest() != digest:
        return None
    commit, number, root, rows = marshal.loads(body)  # noqa: S302 - our own file, whole by its digest
    folders = {
        p: Folder(entries, below, left_out, stored, frozenset(unsure), files, size, artifacts)
        for p, entries, below, left_out, stored, unsure, files, size, artifacts in rows
    }
    return Memory(commit, number, root, folders)
