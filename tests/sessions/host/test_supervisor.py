"""The supervisor starts a host again when it dies, and lets the one that was told to stop be the last."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from sessions.host import supervisor
from sessions.host.supervisor import MOST_QUICK_DEATHS, Supervisor

DIES = "import os, sys; open(sys.argv[1], 'a').write('x'); os._exit(7)"
ENDS_WELL_THE_SECOND_TIME = (
    "import os, sys; f = open(sys.argv[1], 'a'); f.write('x'); f.flush(); os._exit(7 * (f.tell() < 2))"
)


def begun(folder: Path, program: str) -> tuple[Supervisor, Path]:
    starts = folder / "starts"
    starts.touch()
    return Supervisor([sys.executable, "-c", program, str(starts)]), starts


def test_a_host_that_dies_is_started_again_until_one_ends_well(tmp_path: Path) -> None:
    one, starts = begun(tmp_path, ENDS_WELL_THE_SECOND_TIME)
    assert one.run() == 0
    assert starts.read_text() == "xx"


def test_a_host_that_dies_at_once_every_time_is_left_alone(tmp_path: Path) -> None:
    one, starts = begun(tmp_path, DIES)
    assert one.run() == 7
    assert len(starts.read_text()) == MOST_QUICK_DEATHS


def test_a_stop_between_two_hosts_starts_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, starts = begun(tmp_path, DIES)
    monkeypatch.setattr(supervisor.time, "sleep", lambda _seconds: one.stop(signal.SIGTERM, None))
    assert one.run() == 7
    assert starts.read_text() == "x"


def test_a_stop_just_as_a_host_begins_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = begun(tmp_path, "import time; time.sleep(600)")
    plain = supervisor.subprocess.Popen

    def started(command: list[str]) -> object:
        host = plain(command)
        one.stop(signal.SIGTERM, None)  # before the supervisor knows this host
        return host

    monkeypatch.setattr(supervisor.subprocess, "Popen", started)
    before = time.monotonic()
    assert one.run() == -signal.SIGTERM
    assert time.monotonic() - before < 60
