"""Reading and writing inside one folder: no `..`, no link, however the tree changes underneath."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

READ_LIMIT = 1 << 20
"""Most bytes one `read_file` returns."""


class PathRefused(ValueError):
    """A path leaves the work folder, goes through a link, or is no regular file."""


class Piece(NamedTuple):
    """Part of a file."""

    content: bytes
    offset: int
    size: int
    """Of the whole file."""


class Workspace:
    """A work folder as an agent may use it: paths are relative to it, or absolute and inside it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str, offset: int = 0, limit: int = READ_LIMIT) -> Piece:
        """Return up to `limit` bytes from `offset`.

        Raises:
            PathRefused: the path is not a regular file inside the work folder.
            OSError: it cannot be read.
        """
        with self._opened(path, os.O_RDONLY) as descriptor:
            size = os.fstat(descriptor).st_size
            return Piece(os.pread(descriptor, min(limit, READ_LIMIT), offset), offset, size)

    def write(self, path: str, content: bytes, *, append: bool = False) -> int:
        """Write a file, making its folders; returns its new size. An existing file keeps its mode and is replaced whole.

        Raises:
            PathRefused: the path is not a regular file inside the work folder.
            OSError: it cannot be written; a file that was there is as before.
        """
        if append:
            with self._opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, make=True) as descriptor:
                _write_all(descriptor, content)
                return os.fstat(descriptor).st_size
        with self._folder(path, make=True) as (folder, name):
            mode = _mode_of(folder, name, path)
            self._replace(folder, name, content, mode)
        return len(content)

    def _replace(self, folder: int, name: str, content: bytes, mode: int) -> None:
        partial = f".{name[:200]}.{os.urandom(4).hex()}.partial"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, mode, dir_fd=folder)
        try:
            try:
                _write_all(descriptor, content)
            finally:
                os.close(descriptor)
            os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=folder)
            raise

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int, *, make: bool = False) -> Iterator[int]:
        with self._folder(path, make=make) as (folder, name):
            # Non-blocking, so that a FIFO in place of the file does not hold us.
            descriptor = _open(name, flags | os.O_NONBLOCK, folder, path)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise PathRefused(f"{path} is not a regular file")
                yield descriptor
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _folder(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Yield the opened folder of `path` and its last name, entering one folder at a time and following no link."""
        *folders, name = self._parts(path)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                inner = _open(part, os.O_RDONLY | os.O_DIRECTORY, descriptor, path)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _parts(self, path: str) -> tuple[str, ...]:
        if not path or "\0" in path:
            raise PathRefused("the path is empty or holds a NUL")
        wanted = PurePosixPath(path)
        if wanted.is_absolute():
            if not wanted.is_relative_to(self.root):
                raise PathRefused(f"{path} is outside the work folder {self.root}")
            wanted = wanted.relative_to(self.root)
        if ".." in wanted.parts or not wanted.parts:
            raise PathRefused(f"{path} does not name a file inside the work folder")
        return wanted.parts


def _open(name: str, flags: int, folder: int, path: str) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise PathRefused(f"{path} goes through the link {name}; name the file itself") from error
        raise type(error)(error.errno, error.strerror, path) from error


def _mode_of(folder: int, name: str, path: str) -> int:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    if not stat.S_ISREG(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise PathRefused(f"{path} is {kind}; nothing was written")
    return stat.S_IMODE(found.st_mode) & 0o777


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
