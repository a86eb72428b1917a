"""Starts a session's host again when it dies: `python -m sessions.host.supervisor RECORD`.

A participant's shell may be in no position to do so: it may not see the record, or not be its owner.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from types import FrameType

QUICK_SECONDS = 5.0
MOST_QUICK_DEATHS = 5
"""A host that dies at once so many times in a row is left alone; the next command tries again."""


class Supervisor:
    """Keeps one host alive until it ends in good order."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._host: subprocess.Popen[bytes] | None = None
        self._told_to_stop = threading.Event()

    def run(self) -> int:
        """Return the host's last exit code."""
        quick_deaths = 0
        while True:
            began = time.monotonic()
            self._host = subprocess.Popen(self._command)
            if self._told_to_stop.is_set():  # between two hosts, when there was none to pass it on to
                self._host.terminate()
            code = self._host.wait()
            if code == 0 or self._told_to_stop.is_set():
                return code
            quick_deaths = quick_deaths + 1 if time.monotonic() - began < QUICK_SECONDS else 0
            if quick_deaths >= MOST_QUICK_DEATHS:
                return code
            time.sleep(0.1 * quick_deaths)
            if self._told_to_stop.is_set():
                return code

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on to the host and let it be the last."""
        self._told_to_stop.set()
        if self._host is not None:
            self._host.send_signal(number)


def main() -> None:
    supervisor = Supervisor([sys.executable, "-m", "sessions.host", sys.argv[1]])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, supervisor.stop)
    sys.exit(supervisor.run())


if __name__ == "__main__":
    main()
