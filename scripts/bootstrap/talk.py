"""What the set-up says on stderr, and how it stops with an explanation."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TextIO


class Exit(IntEnum):
    """The exit codes of the product that the set-up uses too (docs/exit-codes.md)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    PREPARE = 4
    INTERRUPTED = 130


class Stopped(Exception):
    """The set-up cannot go on; the text says what was tried, why not, and what to do."""

    def __init__(self, text: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(text)
        self.code = code


class Talk:
    """Lines of progress: one a step, rewritten in place on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._open_line = False

    def line(self, text: str = "") -> None:
        self._clear()
        print(text, file=self._stream, flush=True)

    def note(self, text: str) -> None:
        self.line("  note: " + text.replace("\n", "\n        "))

    def passing(self, text: str, *, keep: bool = False) -> None:
        """Say what is going on now; without a terminal only what is worth `keep`ing is printed."""
        if self._live:
            self._clear()
            print(f"    {text}"[:78], end="", file=self._stream, flush=True)
            self._open_line = True
        elif keep:
            self.line(f"    {text}")

    @contextmanager
    def step(self, text: str) -> Iterator[list[str]]:
        """Announce a step, then say how long it took and what the body appended to the list."""
        self.line(f"  {text} ...")
        began = time.monotonic()
        results: list[str] = []
        yield results
        took = f"{time.monotonic() - began:.0f} s"
        self.line("    " + ", ".join([*results, took]))

    def _clear(self) -> None:
        if self._open_line:
            print("\r\x1b[2K", end="", file=self._stream)
            self._open_line = False


def human_size(size: float) -> str:
    """Bytes in the decimal units that package indexes and disks are sold in."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
