"""Knows how much a worker has written into the folders that it may write to."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

MOST_FILES = 500_000
"""A run's files and folders: clearing millions away would take longer than many a scoring."""
_BLOCK = 512


class Room:
    """The file systems of a worker's writable folders, and what it may take of them."""

    def __init__(self, folders: Iterable[Path], most_bytes: float, most_files: int = MOST_FILES) -> None:
        self._most = (most_bytes, most_files)
        self._free = {folder: _free(folder) for folder in folders}

    def is_overrun(self, pids: Iterable[int]) -> bool:
        """Whether the folders, and deleted files that `pids` keep open, take more than allowed.

        Free space is looked at first, which costs nothing; only where it has shrunk by that much is it asked who did it.
        """
        taken = [_taken(free, _free(folder)) for folder, free in self._free.items()]
        if not any(self._is_more(bytes_, files) for bytes_, files in taken):
            return False
        bytes_ = sum(_below(folder, "-B1") for folder in self._free) + _bytes_deleted(pids)
        return self._is_more(bytes_, sum(_below(folder, "--inodes") for folder in self._free))

    def _is_more(self, bytes_: float, files: int) -> bool:
        return bytes_ > self._most[0] or files > self._most[1]


def _free(folder: Path) -> tuple[int, int]:
    """Return the free bytes and files of a file system; some count no files and always say 0."""
    found = os.statvfs(folder)
    return found.f_bfree * found.f_frsize, found.f_ffree


def _taken(before: tuple[int, int], now: tuple[int, int]) -> tuple[int, int]:
    return before[0] - now[0], before[1] - now[1]


def _below(folder: Path, unit: str) -> int:
    """Return what is on disk below `folder`; the system's own tool does not mind how deep it is."""
    command = ["du", "-sx", unit, "--", str(folder)]
    said = subprocess.run(command, check=False, capture_output=True, text=True).stdout
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
