"""A child is ended with its group: asked first where it has a grace, and made to where it will not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from environments.machine.processes import end_group

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
POLITE = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(5)))"
)
COMPANION = (
    "import subprocess; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid, flush=True)"
)


def started(*lines: str) -> subprocess.Popen[str]:
    """Start a program that does what `lines` say, says so, and then waits for ever."""
    program = "\n".join((*lines, "print('up', flush=True)", "while True: signal.pause()"))
    process = subprocess.Popen(
        [sys.executable, "-c", f"import signal\n{program}"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process


def read_until_up(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    said = []
    while (line := process.stdout.readline().strip()) != "up":
        said.append(line)
    return said


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_with_a_grace_a_process_is_asked_and_may_end_by_itself() -> None:
    with started(POLITE) as process:
        read_until_up(process)
        end_group(process, 30.0)
        assert process.stdout is not None
        assert process.stdout.read() == "bye\n"
    assert process.returncode == 5


@pytest.mark.parametrize("grace", [0.0, 0.1])
def test_one_that_will_not_end_is_killed(grace: float) -> None:
    with started(STUBBORN) as process:
        read_until_up(process)
        end_group(process, grace)
    assert process.returncode == -signal.SIGKILL


def test_what_it_started_ends_with_it_even_after_it_is_gone() -> None:
    with started(COMPANION) as process:
        (companion,) = map(int, read_until_up(process))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert runs(companion)
        end_group(process, 30.0)
    deadline = time.monotonic() + 30
    while runs(companion):
        assert time.monotonic() < deadline
