"""Sessions on the real host for tests: opened through the command line, ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sessions.clients.client import Client
from sessions.record.store import Record, Store


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
    """End the host of every session of a home, also one too busy to answer."""
    for record in Store(home).records():
        pid = _lock_holder(record)
        if pid is None:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: _lock_holder(record) != pid, 30, f"the end of host {pid}")  # noqa: B023  (called at once)


def _lock_holder(record: Record) -> int | None:
    """Return the process that says it hosts the record, if it is one that does."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(record.host_lock.read_text())
        if str(record.folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None
