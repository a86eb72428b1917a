"""A growing log read as it is written: whole lines, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sessions.record.events import Event, SessionClosed, decode
from sessions.record.store import Record

EVERY_SECONDS = 0.25
"""How often to look for more."""


class Tail:
    """Whole lines of a growing file, each once. A torn last line that a new host cuts off is never seen."""

    def __init__(self, path: Path, *, last_bytes: int | None = None) -> None:
        self._path = path
        self._last_bytes = last_bytes
        self._file: BinaryIO | None = None
        self._offset = 0
        """Where the next whole line begins."""

    def read(self) -> Iterator[bytes]:
        """Yield the lines that have come since the last time."""
        if self._file is None and not self._open():
            return
        assert self._file is not None
        self._file.seek(self._offset)
        *lines, _ = self._file.read().split(b"\n")
        for line in lines:
            self._offset += len(line) + 1
            yield line

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            return False
        size = self._path.stat().st_size
        if self._last_bytes is not None and size > self._last_bytes:
            self._file.seek(size - self._last_bytes)
            self._file.readline()
            self._offset = self._file.tell()
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def follow_lines(record: Record) -> Iterator[Event]:
    """Yield every event of the log, then each new one; blocks in between; ends when the session is closed.

    Raises:
        EventUnreadable: a line is no event.
    """
    tail = Tail(record.log)
    try:
        while True:
            for line in tail.read():
                event = decode(line)
                yield event
                if isinstance(event.body, SessionClosed):
                    return
            time.sleep(EVERY_SECONDS)
    finally:
        tail.close()
