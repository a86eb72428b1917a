"""The workbench above and a recorded shell below, in one tmux window."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from sessions.record.store import Record
from workbench.cli.exits import Exit, Stop

SHELL_SHARE = "38%"
ROWS_FOR_BOTH = 40
"""In a lower terminal the screen would have no room above a shell: they get a window each."""


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
    columns, rows = _terminal_size()
    screen, shell = (_command(word, record) for word in ("attach", "shell"))
    here = ["-c", work_tree]
    if rows >= ROWS_FOR_BOTH:
        second = ["split-window", "-t", f"={name}:", "-v", "-l", SHELL_SHARE, *here, shell]
    else:
        second = ["new-window", "-t", f"={name}:", "-n", "shell", *here, shell]
    commands = (
        [
            "new-session",
            "-d",
            "-s",
            name,
            "-n",
            "workbench",
            "-x",
            str(columns),
            "-y",
            str(rows),
            *here,
            screen,
        ],
        second,
    )
    for command in commands:
        done = subprocess.run([tmux, *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Stop(f"tmux {command[0]}: {done.stderr.strip()}", Exit.INFRASTRUCTURE)


def _terminal_size() -> os.terminal_size:
    """The terminal's own size: COLUMNS and LINES may be left over from another."""
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()


def _command(word: str, record: Record) -> str:
    """Return a shell command for this very installation, with the variables that find the session."""
    carried = {
        name: value for name, value in os.environ.items() if name.startswith(("REBENCH_", "PYTHONPATH"))
    }
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in carried.items())
    program = f"{shlex.quote(sys.executable)} -m workbench.cli"
    option = record.session if word == "attach" else f"--session {record.session}"
    return f"env {settings} {program} {word} {option}"
