"""A pseudo-terminal with a program in it, for tests of what the terminal is left like."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[3]


class PseudoTerminal:
    """Runs a program on a terminal of its own; reads what it writes while waiting for conditions."""

    def __init__(
        self, *arguments: str, size: tuple[int, int] = (120, 40), environ: Mapping[str, str] | None = None
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.before = termios.tcgetattr(slave)
        self.output = b""
        self.began = time.monotonic()
        # The slave stays open here: its modes can be read after the program has ended.
        self._slave = slave
        variables = {
            **os.environ,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **(environ or {}),
        }
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=slave, stdout=slave, stderr=slave, env=variables, cwd=ROOT,
            preexec_fn=self._take_terminal,  # noqa: PLW1509  (nothing else runs in these tests)
        )  # fmt: skip

    @staticmethod
    def _take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    @property
    def raw(self) -> bool:
        return not self.modes[3] & termios.ICANON

    def read(self, seconds: float = 0.02) -> bytes:
        """Take what was written since the last time."""
        taken = b""
        while select.select([self.master], [], [], seconds if not taken else 0)[0]:
            try:
                chunk = os.read(self.master, 65_536)
            except OSError:
                break
            if not chunk:
                break
            taken += chunk
        self.output += taken
        return taken

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
        """Read until `condition` holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; last output {self.output[-600:]!r}")
            self.read()

    def shows(self, text: str) -> Callable[[], bool]:
        wanted = text.encode()
        return lambda: wanted in self.output

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def wait(self) -> int:
        """Read until the program has ended; returns its exit code."""
        self.until(lambda: self.process.poll() is not None, "the program ends")
        self.read()
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self._slave)
