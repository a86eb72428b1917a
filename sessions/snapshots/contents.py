"""Reading files that may change under the reader, and saying so when they did."""

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from sessions.snapshots.folders import Key, key_of, open_file

_PAUSES = (0.0, 0.005, 0.02)  # seconds before each further attempt


class NotAFile(OSError):
    """What was a file when it was seen is something else now."""


class Reading(NamedTuple):
    data: bytes
    key: Key
    torn: bool


class TooLarge(Exception):
    """More than fits in memory by policy; the caller keeps it as an artifact."""


def read_file(folder: int, name: str, limit: int, sleep: Callable[[float], None]) -> Reading:
    """The bytes of a regular file of at most `limit` bytes, read again if it changed meanwhile."""
    reading = None
    for pause in _PAUSES:
        if reading is not None:
            sleep(pause)
        fd = open_regular(folder, name)
        try:
            before = os.fstat(fd)
            if before.st_size > limit:
                raise TooLarge
            data = _read_all(fd, before.st_size)
            torn = len(data) != before.st_size or key_of(os.fstat(fd)) != key_of(before)
        finally:
            os.close(fd)
        reading = Reading(data[: before.st_size], key_of(before), torn)
        if not torn:
            break
    assert reading is not None
    return reading


def open_regular(folder: int, name: str) -> int:
    fd = open_file(folder, name)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotAFile(f"{name!r} is no regular file any more")


def _read_all(fd: int, expected: int) -> bytes:
    """One byte more than expected, if there is one, to notice growth."""
    data = os.read(fd, expected + 1)
    if len(data) == expected or not data:
        return data
    parts, size = [data], len(data)
    while size <= expected and (more := os.read(fd, expected + 1 - size)):
        parts.append(more)
        size += len(more)
    return b"".join(parts)
