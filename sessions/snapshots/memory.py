"""What the last snapshot saw, kept beside the store so that the next one reads only what changed."""

import hashlib
import marshal
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sessions.snapshots.values import SnapshotPolicy
from sessions.snapshots.walk import Folder

_FORMAT = "2"
_SEAL = 512  # bytes before the body


@dataclass(slots=True)
class Memory:
    """Which file's contents are stored where. `folders` is also what `commit` says, of the same root folder."""

    commit: str
    root: tuple[int, int]
    """Device and inode of the working tree."""
    folders: dict[str, Folder]
    body: bytes
    """SHA-256 of the folders as they were saved."""


class Saving:
    """A memory on its way to the disk: its body while git is still writing, its seal once the commit has a name.

    Not flushed: losing it costs time and nothing else. The body of an untouched tree stays where it is."""

    def __init__(
        self, file: Path, folders: dict[str, Folder], policy: SnapshotPolicy, last: Memory | None
    ) -> None:
        self._file, self._target, self._folders = file, file, folders
        self._stamp = _stamp(policy)
        if last is not None and _same(last.folders, folders) and self._holds(last.body):
            self._digest = last.body
            return
        rows = [
            (p, f.entries, f.folders, f.left_out, f.stored, tuple(f.unsure), f.files, f.bytes, f.artifacts)
            for p, f in folders.items()
        ]
        body = marshal.dumps(rows)
        self._target = file.with_suffix(".making")
        self._digest = hashlib.sha256(body).digest()
        with suppress(OSError):
            self._target.unlink(missing_ok=True)
            fd = os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as making:
                making.write(bytes(_SEAL))
                making.write(body)

    def _holds(self, body: bytes) -> bool:
        """Another process may have saved its own since."""
        try:
            with self._file.open("rb") as file:
                return file.read(64) == self._stamp + body
        except OSError:
            return False

    def seal(self, commit: str, root: tuple[int, int]) -> Memory:
        head = msgspec.json.encode((commit, root))
        with suppress(OSError):
            with self._target.open("r+b") as file:
                file.write((self._stamp + self._digest + head).ljust(_SEAL))
            if self._target != self._file:
                self._target.replace(self._file)
        return Memory(commit, root, self._folders, self._digest)


def _same(last: dict[str, Folder], now: dict[str, Folder]) -> bool:
    return len(last) == len(now) and all(last.get(path) is folder for path, folder in now.items())


def _stamp(policy: SnapshotPolicy) -> bytes:
    """marshal's format belongs to one Python; what was skipped belongs to one policy."""
    text = f"{_FORMAT} {sys.version} ".encode() + msgspec.json.encode(policy)
    return hashlib.sha256(text).digest()


def load(file: Path, policy: SnapshotPolicy) -> Memory | None:
    """The memory in `file`, if it is whole, ours, and made by this program under this policy."""
    try:
        if file.stat().st_uid != os.geteuid():
            return None
        raw = file.read_bytes()
    except OSError:
        return None
    stamp, digest, head, body = raw[:32], raw[32:64], raw[64:_SEAL], raw[_SEAL:]
    if stamp != _stamp(policy) or hashlib.sha256(body).digest() != digest:
        return None
    try:
        commit, root = msgspec.json.decode(head, type=tuple[str, tuple[int, int]])
    except msgspec.DecodeError:
        return None
    rows = marshal.loads(body)  # noqa: S302 - our own file, whole by its digest
    folders = {
        p: Folder(entries, below, left_out, stored, frozenset(unsure), files, size, artifacts)
        for p, entries, below, left_out, stored, unsure, files, size, artifacts in rows
    }
    return Memory(commit, root, folders, digest)
