"""What only a terminal can show: a choice on Ctrl-C, questions, tmux, and a recorded shell."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessions.host.surveying import COMMON
from sessions.record.store import Record, Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Run
from tests.workbench.live import end_hosts
from workbench.cli.exits import Exit

pytestmark = pytest.mark.timeout(180)
ROOT = Path(__file__).parents[3]


class OnTerminal:
    """A command of ours on a terminal of its own."""

    def __init__(self, *arguments: str, cwd: Path, rows: int = 40, columns: int = 120) -> None:
        self.said = ""
        pid, self._terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(cwd)
            variables = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
            os.execve(sys.executable, [sys.executable, "-m", "workbench.cli", *arguments], variables)
        self.pid = pid

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Read until `text` is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < deadline, f"{text!r} never came; there is {self.said!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self._terminal, 65_536).decode(errors="replace")
                except OSError:
                    assert text in self.said, f"ended without {text!r}: {self.said!r}"

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def ended(self) -> int:
        """Read to the end and return the exit code."""
        with contextlib.suppress(OSError):
            while chunk := os.read(self._terminal, 65_536):
                self.said += chunk.decode(errors="replace")
        _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def record(run: Run, home: Path, tmp_path: Path) -> Iterator[Record]:
    work = tmp_path / "work"
    assert (
        run("start", "tiny_sum", "--detach", "--yes", "--isolation", "none", "--workdir", str(work)).code
        == Exit.OK
    )
    (record,) = Store(home).records()
    yield record
    end_hosts(home)


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[Callable[..., OnTerminal]]:
    started: list[OnTerminal] = []

    def start(*arguments: str, rows: int = 40) -> OnTerminal:
        started.append(OnTerminal(*arguments, cwd=tmp_path, rows=rows))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.parametrize(("answer", "status"), [("y", "cancelled"), ("n", "valid")])
def test_ctrl_c_asks_what_becomes_of_the_scoring(
    run: Run, record: Record, on_terminal: Callable[..., OnTerminal], tmp_path: Path, answer: str, status: str
) -> None:
    (tmp_path / "work" / "answer.txt").write_text("slow 3")
    scoring = on_terminal("score")
    scoring.wait_for("reading the answer")
    scoring.type("\x03")
    scoring.wait_for("Cancel score #1?")
    scoring.type(f"{answer}\n")
    assert scoring.ended() == Exit.INTERRUPTED

    def status_now() -> object:
        return json.loads(run("history", "--json").out)["rows"][1]["status"]

    wait_until(lambda: status_now() is not None, what="the end of the scoring")
    assert status_now() == status


def test_submit_says_what_is_handed_in_and_takes_no_for_an_answer(
    record: Record, on_terminal: Callable[..., OnTerminal]
) -> None:
    asking = on_terminal("submit")
    asking.wait_for("Submit now?")
    assert "time left" in asking.said
    asking.type("n\n")
    assert asking.ended() == Exit.REFUSED
    assert b'"kind":"submitted"' not in record.log.read_bytes()


def test_the_survey_asks_the_environments_questions(
    run: Run, record: Record, on_terminal: Callable[..., OnTerminal]
) -> None:
    assert run("submit", "--yes").code == Exit.OK
    asking = on_terminal("survey")
    for question in COMMON:
        asking.wait_for(question.ask)
        asking.type("\n")
    asking.wait_for("What was hardest?")
    asking.type("the waiting\n")
    assert asking.ended() == Exit.OK
    wait_until(record.closed)
    assert b'"hardest":"the waiting"' in record.log.read_bytes()


def test_watching_the_status_draws_it_again(record: Record, on_terminal: Callable[..., OnTerminal]) -> None:
    watching = on_terminal("status", "--watch")
    watching.wait_for("time left")
    watching.said = ""
    watching.wait_for(":")  # only what changed is painted again
    watching.type("q")
    assert watching.ended() == Exit.INTERRUPTED


def test_a_recorded_shell_is_seen_in_the_replay(
    run: Run, record: Record, on_terminal: Callable[..., OnTerminal]
) -> None:
    shell = on_terminal("shell")
    wait_until(lambda: b'"kind":"shell_opened"' in record.log.read_bytes())
    shell.type("echo $((40 + 2)) is the answer; exit\n")
    shell.wait_for("42 is the answer")
    assert shell.ended() == Exit.OK
    wait_until(lambda: b'"kind":"shell_closed"' in record.log.read_bytes())
    shown = run("replay", record.session, "--terminal")
    assert shown.code == Exit.OK
    assert "42 is the answer" in shown.out


def test_the_screen_opens_on_a_terminal_and_leaving_it_ends_nothing(
    run: Run, record: Record, on_terminal: Callable[..., OnTerminal]
) -> None:
    screen = on_terminal("attach")
    screen.wait_for("SCORING")
    screen.type("q")
    assert screen.ended() == Exit.OK
    assert json.loads(run("status", "--json").out)["phase"] == "running"


@pytest.mark.parametrize("command", ["replay", "watch"])
def test_replay_and_watch_open_the_same_screen(
    record: Record, on_terminal: Callable[..., OnTerminal], command: str
) -> None:
    screen = on_terminal(command, record.session)
    screen.wait_for("REPLAY" if command == "replay" else "SCORING")
    screen.type("q")
    assert screen.ended() == Exit.OK


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize(("rows", "layout"), [(60, "0.0 0.1"), (24, "0.0 1.0")])
def test_tmux_shows_the_screen_and_a_recorded_shell_in_one_window_or_in_two(
    record: Record,
    on_terminal: Callable[..., OnTerminal],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rows: int,
    layout: str,
) -> None:
    sockets = tmp_path / "t"
    sockets.mkdir()
    monkeypatch.setenv("TMUX_TMPDIR", str(sockets))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("TMUX", raising=False)

    def tmux(*arguments: str) -> str:
        return subprocess.run(["tmux", *arguments], capture_output=True, text=True, check=False).stdout

    def panes() -> str:
        return " ".join(tmux("list-panes", "-s", "-t", name, "-F", "#{window_index}.#{pane_index}").split())

    name = f"rebench-{record.session}"
    try:
        on_terminal("attach", "--tmux", rows=rows)
        wait_until(lambda: panes() == layout, what=f"the panes {layout}")
        wait_until(lambda: "SCORE" in tmux("capture-pane", "-p", "-t", f"{name}:0.0"), what="the screen")
        wait_until(lambda: b'"kind":"shell_opened"' in record.log.read_bytes(), what="the recorded shell")
    finally:
        tmux("kill-server")
