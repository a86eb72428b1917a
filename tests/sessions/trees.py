"""Working trees for tests: how to fingerprint one, and how to become somebody who may not read all of it."""

# Paths in bytes are what this is about, and pathlib has none.
# ruff: noqa: PTH115, PTH118

import ctypes
import hashlib
import os
import stat
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sessions.snapshots import SnapshotPolicy, SnapshotStore, remove_checkout

Fingerprint = dict[bytes, tuple[Any, ...]]

SMALL = SnapshotPolicy(artifact_threshold=1 << 16, disk_floor_bytes=0, max_seconds=30.0)


def fingerprint(root: Path, *, times: bool = False, without: tuple[bytes, ...] = ()) -> Fingerprint:
    """Every path below `root` with its type, mode and contents; `times` adds the modification time."""
    found: Fingerprint = {}
    queue = [b""]
    top = os.fsencode(root)
    while queue:
        here = queue.pop()
        for entry in os.scandir(os.path.join(top, here)):
            path = os.path.join(here, entry.name)
            if path in without:
                continue
            found[path] = _one(entry, times)
            if entry.is_dir(follow_symlinks=False):
                queue.append(path)
    return found


def _one(entry: os.DirEntry[bytes], times: bool) -> tuple[Any, ...]:
    status = entry.stat(follow_symlinks=False)
    when = (status.st_mtime_ns,) if times else ()
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(entry.path), *when)
    if stat.S_ISDIR(status.st_mode):
        return ("folder", oct(status.st_mode), *when)
    digest = hashlib.sha256(Path(os.fsdecode(entry.path)).read_bytes()).hexdigest()
    return ("file", oct(status.st_mode), status.st_size, digest, *when)


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def world(tmp_path: Path, policy: SnapshotPolicy = SMALL) -> tuple[SnapshotStore, Path]:
    """An empty store and an empty working tree, side by side."""
    work = tmp_path / "work"
    work.mkdir()
    return SnapshotStore.create(tmp_path / "store", policy), work


def restored(store: SnapshotStore, ref: int | str, tmp_path: Path) -> Path:
    """Check a snapshot out into a folder of its own."""
    into = tmp_path / f"restored-{ref}"
    store.checkout(ref, into)
    return into


def fsck(store: SnapshotStore) -> str:
    """git's own opinion, at its strictest."""
    done = subprocess.run(
        ["git", "-C", store.folder / "snapshots.git", "fsck", "--strict", "--full", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    return "\n".join(
        line for line in said.splitlines() if not line.startswith("notice: HEAD points to an unborn")
    )


def without_privileges(body: Callable[[], Any]) -> Any:
    """What `body` returns in a child process that may read only what the modes allow, even where we are root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            _drop_capabilities()
            with os.fdopen(writing, "wb") as answer:
                answer.write(msgspec.json.encode(body()))
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent by the exit status, to the reader by the text
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the unprivileged part failed; its traceback is on stderr"
    return msgspec.json.decode(said)


def _drop_capabilities() -> None:
    """Root's power to read and write everything is a capability like any other; see capset(2)."""
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


@contextmanager
def dug(below: Path, depth: int, name: str = "d") -> Iterator[None]:
    """Put a file under `depth` folders in each other: deeper than a path, and than Python's own tools, can go.

    All of `below` is removed afterwards: pytest could not clear it away.
    """
    at = os.open(below, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)
    try:
        yield
    finally:
        remove_checkout(below)
