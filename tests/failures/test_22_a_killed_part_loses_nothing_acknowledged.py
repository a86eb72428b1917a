"""Failure 22: kill -9 left a session without its result."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sessions.audit.verify import verify
from sessions.clients.client import HostGone
from sessions.clients.protocol import Refusal
from sessions.record.fold import fold
from tests.sessions.live import Live, live, until


def scorer_of(session: Live) -> psutil.Process | None:
    for process in psutil.Process(session.host_pid()).children(recursive=True):
        if "environments.invoke" in " ".join(process.cmdline()):
            return process
    return None


def test_a_killed_host_is_back_for_the_next_command_and_the_clock_is_right(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        began = time.monotonic()
        session.ask("note", text="before")
        session.kill_host()
        session.ask("note", text="after")
        elapsed = session.ask("status")["elapsed_ms"] / 1000
        assert elapsed == pytest.approx(time.monotonic() - began, abs=1.0)
        texts = [note.text for note in fold(session.events()).notes]
        assert texts == ["before", "after"]
        assert verify(session.record).sound


def test_a_killed_host_takes_a_running_score_up_again(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        (session.work / "solution.py").write_text(
            "import time\ntime.sleep(1)\ndef predict(xs):\n    return [3 * x - 1 for x in xs]\n"
        )
        session.ask("score", wait=False)
        session.kill_host()
        until(lambda: session.ask("history")["rows"][1]["status"] == "valid")


def test_a_killed_scorer_is_tried_again(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        (session.work / "solution.py").write_text(
            "import time\ntime.sleep(1)\ndef predict(xs):\n    return [3 * x - 1 for x in xs]\n"
        )
        session.ask("score", wait=False)
        until(lambda: scorer_of(session) is not None)
        scorer = scorer_of(session)
        assert scorer is not None
        scorer.kill()
        until(lambda: session.ask("history")["rows"][1]["status"] == "valid")


def test_a_killed_client_costs_nothing(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        command = [sys.executable, "-m", "workbench.cli", "score", "--session", session.record.session]
        variables = {**os.environ, "REBENCH_HOME": str(session.store.home)}
        client = subprocess.Popen(
            command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: len(session.ask("history")["rows"]) == 2)
        client.send_signal(signal.SIGKILL)
        client.wait()
        until(lambda: session.ask("history")["rows"][1]["status"] == "valid")


@pytest.mark.slow
def test_random_kills_during_a_busy_session_lose_nothing_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []
    with live(tmp_path) as session:
        session.begin()
        began = time.monotonic()
        for number in range(20):
            try:
                session.ask("note", text=f"note {number}")
                acknowledged.append(f"note {number}")
                session.solve(f"{number} * x")
                session.ask("score", wait=False)
            except (HostGone, Refusal):
                pass
            victims = psutil.Process(session.host_pid()).children(recursive=True)
            victim = chance.choice([psutil.Process(session.host_pid()), *victims])
            time.sleep(chance.random() * 0.3)
            if victim.is_running():
                victim.kill()
        until(lambda: not session.ask("status")["pending"], 120)
        elapsed = session.ask("status")["elapsed_ms"] / 1000
        assert elapsed == pytest.approx(time.monotonic() - began, abs=1.0)
        state = fold(session.events())
        assert [note.text for note in state.notes] == acknowledged
        report = verify(session.record)
        assert report.sound, report.problems
