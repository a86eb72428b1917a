"""Opening folders and files below a root without ever being led out of it by a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter

Key = tuple[int, int, int, int, int]
"""mode, inode, size, mtime (ns), ctime (ns): equal keys mean an untouched file."""
key_of = attrgetter("st_mode", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
MODE, INODE, SIZE, MTIME, CTIME = range(5)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NOATIME = getattr(os, "O_NOATIME", 0)
_LONGEST = 3000  # bytes of a path in one call, well under PATH_MAX


class Moved(OSError):
    """The folder that was seen is not the folder that was opened."""


def _open_quietly(path: str, flags: int, dir_fd: int | None) -> int:
    """Without touching the access time, where we own the file or may do as if."""
    try:
        return os.open(path, flags | _NOATIME, dir_fd=dir_fd)
    except PermissionError:
        return os.open(path, flags, dir_fd=dir_fd)


def open_root(path: str | os.PathLike[str]) -> int:
    """The working tree itself may be reached through a link."""
    return _open_quietly(os.fspath(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None)


def open_folder(root: int, path: str) -> int:
    """A descriptor for `path` below `root`, however deep."""
    if not path:
        return os.open(".", _FOLDER, dir_fd=root)
    if len(path) < _LONGEST // 4 or len(os.fsencode(path)) < _LONGEST:
        return _open_quietly(path, _FOLDER, root)
    fd = os.open(".", _FOLDER, dir_fd=root)
    for stretch in _stretches(path):
        try:
            below = _open_quietly(stretch, _FOLDER, fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _stretches(path: str) -> Iterator[str]:
    """`path` in pieces that the kernel takes: as long as can be, for a folder costs a walk of all those above it."""
    at, raw = 0, os.fsencode(path)
    while len(raw) - at > _LONGEST:
        end = raw.rindex(b"/", at, at + _LONGEST)
        yield os.fsdecode(raw[at:end])
        at = end + 1
    yield os.fsdecode(raw[at:])


@contextmanager
def opened(root: int, path: str, inode: int | None = None) -> Iterator[int]:
    """The folder `path`, provided that it still is the one with `inode`.

    Only the last step of a path is protected by O_NOFOLLOW; the inode, seen from a folder that was itself checked,
    vouches for the steps before it."""
    fd = open_folder(root, path)
    try:
        if inode is not None and os.fstat(fd).st_ino != inode:
            raise Moved(f"the folder {path!r} was replaced while the snapshot was being taken")
        yield fd
    finally:
        os.close(fd)


def open_file(folder: int, name: str) -> int:
    """Neither follows a link nor waits for the other end of a pipe; the caller checks what it got."""
    return _open_quietly(name, _FILE, folder)


def is_folder(key: Key) -> bool:
    return stat.S_ISDIR(key[MODE])
