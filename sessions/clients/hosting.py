"""Reaching a session's host: connect, and start it again from the log when it is dead."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

from sessions.clients.client import Client, HostGone, greeted
from sessions.record.store import Record

START_SECONDS = 20.0


class SessionOver(RuntimeError):
    """The session is closed: nobody hosts it any more, its log says everything."""


def connect(record: Record, *, proctor: bool = False, timeout: float | None = None) -> Client:
    """Return a client of the session's host, which is started when none answers.

    Raises:
        SessionOver: the session is closed.
        HostGone: the host does not come up; its log is named.
    """
    path = record.proctor_socket if proctor else record.participant_socket
    try:
        return greeted(path, timeout)
    except HostGone:
        if record.closed():
            raise SessionOver(f"session {record.session} is closed") from None
    start_host(record)
    return greeted(path, timeout)


def start_host(record: Record) -> None:
    """Start a host and wait until it listens; a host that is there already is as good.

    Raises:
        HostGone: none listens after a while; says where its log is.
    """
    with record.host_log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sessions.host.supervisor", str(record.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if _listens(record):
            return
        if process.poll() not in (None, 0) and not is_hosted(record):
            break
        time.sleep(0.01)
    tail = record.host_log.read_bytes()[-600:].decode(errors="replace")
    raise HostGone(f"the host of {record.session} did not start; {record.host_log} ends with:\n{tail}")


def stop_host(record: Record) -> None:
    """Ask the session's host to let go; nothing is lost, the next command starts another."""
    try:
        with Client(record.participant_socket) as client:
            host = int(client.request("hello")["pid"])
    except HostGone:
        return
    os.kill(host, signal.SIGTERM)
    deadline = time.monotonic() + START_SECONDS
    while is_hosted(record) and time.monotonic() < deadline:
        time.sleep(0.01)


def _listens(record: Record) -> bool:
    try:
        greeted(record.participant_socket, START_SECONDS).close()
    except HostGone:
        return False
    return True


def is_hosted(record: Record) -> bool:
    """Whether a host owns the session now."""
    if not record.host_lock.exists():
        return False
    descriptor = os.open(record.host_lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
