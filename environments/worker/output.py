"""Takes in what an untrusted process says: bounded output, printable lines, throttled progress."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

from environments.contract import Progress, ReportProgress
from environments.literal import one_line

_TAIL_BYTES = 16 * 1024
_PROGRESS_PERIOD = 0.1


class LogTail:
    """Reads a pipe to its end, whatever comes, and keeps the last part of the first `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._dropped = 0
        self._tail = bytearray()
        self._thread: threading.Thread | None = None

    def follow(self, descriptor: int) -> None:
        self._thread = threading.Thread(target=self._read, args=(os.dup(descriptor),), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the pipe's end, which comes when its last writer is gone."""
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def text(self) -> str:
        kept = bytes(self._tail[-_TAIL_BYTES:]).decode("utf-8", errors="replace")
        return f"{kept}\n[{self._dropped} further bytes of output were dropped]" if self._dropped else kept

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while content := pipe.read(65536):
                kept = content[: max(0, self._left)]
                self._left -= len(kept)
                self._dropped += len(content) - len(kept)
                self._tail += kept
                if len(self._tail) > 4 * _TAIL_BYTES:
                    del self._tail[:-_TAIL_BYTES]


class ProgressFilter:
    """Passes an untrusted process's progress on, checked and at most ten times a second."""

    def __init__(self, report: ReportProgress) -> None:
        self._report = report
        self._next = 0.0

    def take(self, body: Mapping[str, object]) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _PROGRESS_PERIOD
        fraction = body.get("fraction")
        if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            fraction = None
        stage = printable(body.get("stage"), 80) or "working"
        self._report(Progress(stage=stage, fraction=None if fraction is None else float(fraction)))


def printable(value: object, longest: int) -> str:
    """Return untrusted text as one harmless line."""
    text = value if isinstance(value, str) else ""
    return one_line(text[: 4 * longest])[:longest].strip()
