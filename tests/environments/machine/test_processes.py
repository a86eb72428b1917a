"""A command is killed, stopped and let go on together with descendants that left its process group."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from environments.machine.processes import kill_tree, signal_tree
from tests.waiting import wait_until

Command = tuple[subprocess.Popen[bytes], psutil.Process]
GONE = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A shell that waits for a `sleep` in a session, and so in a group, of its own."""
    noted = tmp_path / "pid"
    line = f"setsid sh -c 'echo $$ >{noted}; exec sleep 600' & wait"
    shell = subprocess.Popen(["sh", "-c", line], start_new_session=True)
    wait_until(lambda: noted.exists() and noted.read_text().endswith("\n"))
    return shell, psutil.Process(int(noted.read_text()))


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() in GONE


def test_a_descendant_in_a_group_of_its_own_is_killed_with_the_command(
    command: Command,
) -> None:
    shell, sleeper = command
    kill_tree(shell.pid)
    assert shell.wait() == -signal.SIGKILL
    wait_until(lambda: is_gone(sleeper))


def test_a_tree_is_stopped_and_goes_on_as_one(
    command: Command,
) -> None:
    shell, sleeper = command
    signal_tree(shell.pid, signal.SIGSTOP)
    tree = (psutil.Process(shell.pid), sleeper)
    wait_until(lambda: all(process.status() == psutil.STATUS_STOPPED for process in tree))
    signal_tree(shell.pid, signal.SIGCONT)
    wait_until(lambda: all(process.status() != psutil.STATUS_STOPPED for process in tree))
    kill_tree(shell.pid)
    shell.wait()


def test_killing_what_is_gone_already_is_no_error(
    command: Command,
) -> None:
    shell, _ = command
    kill_tree(shell.pid)
    shell.wait()
    kill_tree(shell.pid)
