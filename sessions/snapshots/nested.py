"""What a repository inside the working tree is at, read from its files: git is never run in it."""

import io
import os
import re
import stat
from collections.abc import Mapping

from sessions.snapshots.contents import open_regular
from sessions.snapshots.folders import MODE, MTIME, SIZE, is_folder, opened
from sessions.snapshots.names import child, shown
from sessions.snapshots.values import NestedRepository
from sessions.snapshots.walk import Folder, Walked

_LARGEST_INDEX = 32 << 20
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def describe(root: int, path: str, folders: Mapping[str, Folder], walked: Walked) -> NestedRepository:
    """The repository whose `.git` stands in the folder `path`; what is odd about it is said, never raised."""
    where = child(path, ".git")
    if where not in walked.inodes:
        return NestedRepository(
            shown(path) or ".", "", None, None, None, "its .git is not a folder that can be read"
        )
    inode = walked.inodes[where]
    try:
        with opened(root, where, inode) as fd:
            head = _text(fd, "HEAD")
            commit = _commit(root, where, fd, head)
            index = _bytes(fd, "index", _LARGEST_INDEX) if "index" in folders[where].entries else None
    except (OSError, ValueError) as error:
        return NestedRepository(shown(path) or ".", "", None, None, None, f"cannot be read: {error}")
    tracked, changed, problem = _status(index, path, folders)
    if commit is None and problem is None:
        problem = "no commit yet"
    return NestedRepository(shown(path) or ".", shown(head), commit, tracked, changed, problem)


def _bytes(folder: int, name: str, most: int) -> bytes:
    fd = open_regular(folder, name)
    try:
        size = os.fstat(fd).st_size
        if size > most:
            raise ValueError(f"{name} has {size} bytes")
        return os.read(fd, most)
    finally:
        os.close(fd)


def _text(folder: int, name: str) -> str:
    return _bytes(folder, name, 4096).decode("utf-8", "surrogateescape").strip()


def _commit(root: int, where: str, fd: int, head: str) -> str | None:
    """HEAD followed through a loose or packed ref; None before the first commit."""
    if _ID.fullmatch(head):
        return head
    if not head.startswith("ref: "):
        return None
    ref = head.removeprefix("ref: ")
    folder, _, name = ref.rpartition("/")
    if ".." in ref.split("/") or ref.startswith("/"):
        return None
    try:
        with opened(root, child(where, folder) if folder else where) as refs:
            found = _text(refs, name)
        return found if _ID.fullmatch(found) else None
    except OSError:
        pass
    try:
        packed = _bytes(fd, "packed-refs", _LARGEST_INDEX).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    for line in packed.splitlines():
        oid, _, name = line.partition(" ")
        if name == ref and _ID.fullmatch(oid):
            return oid
    return None


def _status(
    index: bytes | None, path: str, folders: Mapping[str, Folder]
) -> tuple[int | None, int | None, str | None]:
    """How many files the index tracks, and how many of them look changed beside it."""
    if index is None:
        return 0, 0, None
    from git.index.fun import read_cache

    try:
        _, entries, _, _ = read_cache(io.BytesIO(index))
    except Exception as error:  # noqa: BLE001 - a parser meant for honest files, given a stranger's
        return None, None, f"its index cannot be read: {type(error).__name__}"
    changed = 0
    for (name, _), entry in entries.items():
        folder, _, leaf = child(path, os.fspath(name)).rpartition("/")
        held = folders.get(folder)
        key = held.entries.get(leaf) if held else None
        if key is None or is_folder(key) or stat.S_IFMT(key[MODE]) != stat.S_IFMT(entry.mode):
            changed += 1
            continue
        seconds, nanoseconds = entry.mtime
        if key[SIZE] & 0xFFFFFFFF != entry.size or key[MTIME] != seconds * 10**9 + nanoseconds:
            changed += 1
    return len(entries), changed, None
