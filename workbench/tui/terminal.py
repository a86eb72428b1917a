"""Keeps the terminal whole: lends it to a shell and takes it back, and restores it after HUP, TERM or a crash."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

_RESET = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[<u"  # paste, focus, resize reports, keyboard protocol
    "\x1b[?1049l\x1b[?25h\x1b[0m"  # alternate screen, cursor, colours
)
ENDING = (signal.SIGHUP, signal.SIGTERM)


class Ended(BaseException):
    """A signal told us to end while somebody else had the terminal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Terminal:
    """The terminal's modes as they were, to be put back whatever happens."""

    def __init__(self) -> None:
        self._fd = sys.__stdin__.fileno() if sys.__stdin__ and sys.__stdin__.isatty() else None
        self._modes: list[Any] | None = None
        if self._fd is not None:
            with contextlib.suppress(termios.error):
                self._modes = termios.tcgetattr(self._fd)

    def restore_modes(self) -> None:
        """Put line discipline and echo back; quiet when the terminal is gone."""
        if self._fd is not None and self._modes is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)

    def restore(self) -> None:
        """Put modes and screen back; never waits for a terminal that takes nothing."""
        self.restore_modes()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if sys.__stderr__ is not None and sys.__stderr__.isatty():
                screen = sys.__stderr__.fileno()
                if select.select([], [screen], [], 0)[1]:
                    os.write(screen, _RESET.encode())


@contextlib.contextmanager
def lent(app: App[Any]) -> Iterator[None]:
    """Suspend the app; afterwards the modes are as before, however the shell left them."""
    terminal = Terminal()
    before = {number: signal.signal(number, _end) for number in ENDING}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with app.suspend():
            cooked = Terminal()
            _clear()
            try:
                yield
            finally:
                cooked.restore_modes()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        del terminal


def _clear() -> None:
    """Give the shell an empty screen; what stood there before the app moves up into the scrollback."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            rows = os.get_terminal_size(sys.__stderr__.fileno()).lines
            sys.__stderr__.write(f"\x1b[{rows};1H" + "\n" * rows + "\x1b[H\x1b[2J")
            sys.__stderr__.flush()


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended(number)
