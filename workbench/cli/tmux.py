"""The workbench above and a recorded shell below, in one tmux window."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from sessions.store import Record
from workbench.cli.exits import Exit, Stop

SHELL_ROWS = "40%"


def open_in_tmux(record: Record) -> Exit:
    """Open a tmux window with both, or go to the one that is there.

    Raises:
        Stop: tmux is not installed, or refuses.
    """
    tmux = shutil.which("tmux")
    if tmux is None:
        raise Stop("tmux is not on the path; apt install tmux, or leave --tmux out", Exit.ENVIRONMENT)
    name = f"rebench-{record.session}"
    if (
        subprocess.run([tmux, "has-session", "-t", f"={name}"], capture_output=True, check=False).returncode
        != 0
    ):
        _make(tmux, name, record)
    going_there = "switch-client" if os.environ.get("TMUX") else "attach-session"
    done = subprocess.run([tmux, going_there, "-t", f"={name}"], check=False)
    return Exit.OK if done.returncode == 0 else Exit.INFRASTRUCTURE


def _make(tmux: str, name: str, record: Record) -> None:
    work_tree = record.header()["work_tree"]
    screen, shell = (_command(word, record) for word in ("attach", "shell"))
    commands = (
        [tmux, "new-session", "-d", "-s", name, "-c", work_tree, screen],
        [tmux, "split-window", "-t", f"={name}:", "-v", "-l", SHELL_ROWS, "-c", work_tree, shell],
        # The screen's pane stays after a crash of it, with its last words.
        [tmux, "set-option", "-t", f"={name}:", "remain-on-exit", "failed"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and command[1] != "set-option":
            raise Stop(f"tmux {command[1]}: {done.stderr.strip()}", Exit.INFRASTRUCTURE)


def _command(word: str, record: Record) -> str:
    """Return a shell command for this very installation, with the variables that find the session."""
    carried = {
        name: value for name, value in os.environ.items() if name.startswith(("REBENCH_", "PYTHONPATH"))
    }
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in carried.items())
    program = f"{shlex.quote(sys.executable)} -m workbench.cli"
    option = record.session if word == "attach" else f"--session {record.session}"
    return f"env {settings} {program} {word} {option}"
