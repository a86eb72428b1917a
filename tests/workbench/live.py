"""Sessions on the real host for tests: opened through the command line, ended whatever happens."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from sessions.clients.client import Client
from sessions.record.store import Record, Store
from tests.waiting import wait_until


def host_pid(record: Record) -> int:
    with Client(record.participant_socket, timeout=10) as client:
        return int(client.request("hello")["pid"])


def end_hosts(home: Path) -> None:
    """End the host of every session of a home, also one too busy to answer or just being started again, and its shells."""
    for record in Store(home).records():
        for process in _hosting(record):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        wait_until(lambda: not _hosting(record), 30, f"the end of {record.session}'s host")  # noqa: B023  (called at once)
        for process in _recording(record):  # a recorder outlives its host, which the next one finds again
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def _hosting(record: Record) -> list[psutil.Process]:
    """Return the supervisor and the host of a record, the supervisor first: it would start another host."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if str(record.folder) in words and {"sessions.host", "sessions.host.supervisor"} & set(words):
            found.append(process)
    return sorted(found, key=lambda process: "sessions.host" in process.info["cmdline"])


def _recording(record: Record) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if "sessions.recording.recorder" in (words := process.info["cmdline"] or ())
        and any(word.startswith(f"{record.recordings}/") for word in words)
    ]
