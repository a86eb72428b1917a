"""Sessions on the real host for tests: opened through the command line, ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sessions.client import Client, HostGone
from sessions.store import Record, Store


def wait_for(condition: Callable[[], bool], seconds: float = 30.0, what: str = "the condition") -> None:
    """Look again and again until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds} s"
        time.sleep(0.02)


def host_pid(record: Record) -> int:
    with Client(record.participant_socket, timeout=10) as client:
        return int(client.request("hello")["pid"])


def end_hosts(home: Path) -> None:
    """End the host of every session of a home."""
    for record in Store(home).records():
        with contextlib.suppress(HostGone, OSError, ProcessLookupError):
            os.kill(host_pid(record), signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            wait_for(lambda record=record: not record.participant_socket.exists(), 10)  # type: ignore[misc]
