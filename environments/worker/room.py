"""Knows how much a worker has written into the folders that it may write to."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_BLOCK = 512


class Room:
    """The file systems of a worker's writable folders, and what it may take of them."""

    def __init__(self, folders: Iterable[Path], most_bytes: float) -> None:
        self._folders = tuple(folders)
        self._most = most_bytes
        self._free = {folder: shutil.disk_usage(folder).free for folder in self._folders}

    def is_overrun(self, pids: Iterable[int]) -> bool:
        """Whether the folders, and deleted files that `pids` keep open, take more than allowed.

        Free space is looked at first, which costs nothing; only where it has shrunk by that much is it asked who did it.
        """
        if not any(free - shutil.disk_usage(folder).free > self._most for folder, free in self._free.items()):
            return False
        return sum(map(_bytes_below, self._folders)) + _bytes_deleted(pids) > self._most


def _bytes_below(folder: Path) -> int:
    """Return the bytes on disk below `folder`; the system's own tool does not mind how deep it is."""
    said = subprocess.run(["du", "-sxB1", "--", folder], check=False, capture_output=True, text=True).stdout
    return int(said.split()[0]) if said else 0


def _bytes_deleted(pids: Iterable[int]) -> int:
    """Return the bytes on disk of open files that have no name any more."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    status = descriptor.stat()
                    if status.st_nlink == 0:
                        found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return sum(found.values())
