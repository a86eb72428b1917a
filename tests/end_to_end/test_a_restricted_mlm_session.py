"""The whole product once, on a real environment: by the command line, and by the agents' interface."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from sessions.record.fold import fold
from sessions.record.log import read_log
from sessions.record.state import SessionState
from sessions.record.store import Store
from tests.sessions.live import until

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.serial]

WORKBENCH = [sys.executable, "-m", "workbench.cli"]
TRAIN = [sys.executable, "train.py", "--tokens", "150000"]
RULE_BROKEN = "        x = row.reshape(ids.shape[0], LENGTH, WIDTH) / 2.0\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the environment prepared, shared by the two sessions."""
    folder = tmp_path_factory.mktemp("e2e")
    subprocess.run(
        [*WORKBENCH, "env", "prepare", "restricted_mlm", "--profile", "cpu"],
        env=variables(folder),
        check=True,
    )
    return folder


def variables(place: Path) -> dict[str, str]:
    return {**os.environ, "REBENCH_HOME": str(place / "home"), "REBENCH_RUNTIME": str(place / "run")}


def break_a_rule(model: Path) -> int:
    """Put a division into the model; returns its line."""
    lines = model.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "row.reshape(ids.shape[0], LENGTH, WIDTH)" in line)
    lines[at] = RULE_BROKEN
    model.write_text("".join(lines))
    return at + 1


def state_of(place: Path, session: str) -> SessionState:
    return fold(read_log(place / "home" / "sessions" / session / "events.jsonl").events)


def expect_the_story(state: SessionState, line: int) -> None:
    """Both interfaces must leave this behind."""
    start, trained, broken = state.scores[:3]
    assert start.normalised == pytest.approx(0.0, abs=0.1)
    assert trained.raw is not None
    assert start.raw is not None
    assert trained.raw < start.raw
    assert broken.status == "invalid"
    assert "div" in broken.message
    assert f"model.py:{line}" in broken.message
    assert state.counted is trained or state.counted == trained
    assert [pause.ended is not None for pause in state.pauses] == [True]
    assert state.closed is not None


def kinds_of(place: Path, session: str) -> set[str]:
    return {event.kind for event in read_log(place / "home" / "sessions" / session / "events.jsonl").events}


def test_by_the_command_line_with_parts_killed_on_the_way(place: Path) -> None:
    work = place / "cli"

    def workbench(*arguments: str, expect: int = 0) -> str:
        done = subprocess.run(
            [*WORKBENCH, *arguments], env=variables(place), cwd=work if work.exists() else place,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == expect, done.stderr + done.stdout
        return done.stdout

    workbench("start", "restricted_mlm", "--profile", "cpu", "--workdir", str(work), "--detach", "--yes")
    began = time.monotonic()
    session = json.loads(workbench("status", "--json"))["session"]
    record = Store(place / "home").find(session)
    assert "masked" in workbench("brief").lower()
    subprocess.run(TRAIN, cwd=work, check=True, stdout=subprocess.DEVNULL)
    kill_host(record.host_lock)
    trained = json.loads(workbench("score", "-m", "trained further", "--json"))
    assert trained["status"] == "valid"
    line = break_a_rule(work / "model.py")
    scoring = subprocess.Popen(
        [*WORKBENCH, "score"], env=variables(place), cwd=work, stdout=subprocess.DEVNULL
    )
    until(lambda: scorer_of(record.host_lock) is not None)
    scorer = scorer_of(record.host_lock)
    assert scorer is not None
    scorer.kill()
    assert scoring.wait() == 0
    elapsed = json.loads(workbench("status", "--json"))["elapsed_ms"] / 1000
    assert elapsed == pytest.approx(time.monotonic() - began, abs=15)  # `start` itself returns a little later
    workbench("pause", "--reason", "break")
    workbench("resume")
    workbench("submit", "--yes")
    until(lambda: not json.loads(workbench("status", "--json"))["pending"], 60)
    workbench("survey", "--answer", "bound=ideas")
    until(record.closed)
    assert "sound" in workbench("verify", session)
    expect_the_story(state_of(place, session), line)
    expect_replay_as_seen(workbench, place, session)


def test_by_the_agents_interface(place: Path) -> None:
    agent = Headless(place)
    opened = agent.ask("session.start")
    work = Path(opened["work_tree"])
    assert "masked" in agent.ask("brief")["text"].lower()
    done = agent.ask("exec", command=" ".join(TRAIN), timeout=300)
    assert done["exit_code"] == 0, done["output"]
    agent.ask("score", note="trained further")
    line = break_a_rule(work / "model.py")
    assert agent.ask("score")["status"] == "invalid"
    agent.ask("pause", reason="api")
    agent.ask("resume")
    agent.ask("submit")
    session = opened["session"]
    until(Store(place / "home").find(session).closed, 90)
    agent.close()
    expect_the_story(state_of(place, session), line)


def test_both_records_have_the_same_shape(place: Path) -> None:
    first, second = (kinds_of(place, record.session) for record in Store(place / "home").records())
    only_a_person = {"survey_answered", "interrupted"}
    only_an_agent = {"command_run"}
    assert first - only_a_person - second <= {"heartbeat", "activity_seen", "shell_opened", "health_changed"}
    assert second - only_an_agent - first <= {"heartbeat", "activity_seen", "shell_opened", "health_changed"}


def expect_replay_as_seen(workbench: Callable[..., str], place: Path, session: str) -> None:
    """At every score, the replay shows what the log had told by then, and nothing later."""
    for row in state_of(place, session).scores:
        at = f"{row.elapsed_ms // 1000}s"
        seen = json.loads(workbench("replay", session, "--at", at, "--json"))
        assert all(other["number"] <= row.number for other in seen["rows"])


def kill_host(lock: Path) -> None:
    pid = int(lock.read_text())
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [])


def scorer_of(lock: Path) -> psutil.Process | None:
    for process in psutil.Process(int(lock.read_text())).children(recursive=True):
        if "environments.invoke" in " ".join(process.cmdline()):
            return process
    return None


class Headless:
    """An agent's end of `rebench-workbench headless`."""

    def __init__(self, place: Path) -> None:
        self._process = subprocess.Popen(
            [*WORKBENCH, "headless", "restricted_mlm", "--profile", "cpu", "--workdir", str(place / "agent")],
            env=variables(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._last = 0

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": parameters}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                assert "time_left_ms" in answer["result"]
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"no answer to {method}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0
