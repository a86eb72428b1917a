"""Attaching: the participant's terminal becomes the shell's, and is given back as it was."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sessions.recording.attach import NothingToAttach, run
from sessions.recording.handle import RecorderHandle, Recorders
from sessions.recording.recorder import boottime
from sessions.recording.shell import set_size
from tests.sessions.recording_support import shell_request
from tests.waiting import wait_until

PROGRAM = "import sys; from sessions.recording.attach import run; sys.exit(run(sys.argv[1]))"


@pytest.fixture
async def handle(tmp_path: Path) -> AsyncIterator[RecorderHandle]:
    recorders = Recorders(tmp_path / "recordings", boottime=boottime)
    yield await recorders.start(shell_request(tmp_path))
    await recorders.stop()


class Person:
    """Somebody at a terminal in which `attach` runs."""

    def __init__(self, master: int, slave: int, process: subprocess.Popen[bytes]) -> None:
        self.master, self.slave, self.process = master, slave, process
        self.seen = b""

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def look(self) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(self.master, selectors.EVENT_READ)
            if selector.select(0.02):
                self.seen += os.read(self.master, 65536)
        return self.seen

    def wait_for(self, text: bytes) -> None:
        wait_until(lambda: text in self.look(), what=f"{text!r} in {self.seen[-300:]!r}")

    def leave_code(self) -> int:
        def ended() -> bool:
            self.look()
            return self.process.poll() is not None

        wait_until(ended)
        self.look()
        return self.process.returncode


@contextmanager
def person(socket: Path) -> Iterator[Person]:
    master, slave = os.openpty()
    set_size(master, 30, 90)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(socket)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    try:
        yield Person(master, slave, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_the_exit_code_of_the_shell_is_that_of_the_command(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        somebody.type(b"stty size; exit 5\r")
        somebody.wait_for(b"30 90")
        assert somebody.leave_code() == 5


def test_leaving_keeps_the_shell_and_says_so(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        somebody.type(b"\x1cd")
        assert somebody.leave_code() == 0
        somebody.wait_for(b"left running, and still recorded")
    assert handle.socket is not None


def test_the_leaving_key_twice_reaches_the_program_inside(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        somebody.type(b"trap 'echo got-qu''it' QUIT\r")
        somebody.wait_for(b"QUIT\r\n$ ")
        # Again until it is seen: with the signal, the terminal's driver throws away what was not read yet.
        wait_until(lambda: somebody.type(b"\x1c\x1c\r") or b"got-quit" in somebody.look())


def test_the_terminal_follows_the_size_of_the_window(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        set_size(somebody.master, 12, 70)
        # The window says so, as the kernel does for a process in its foreground.
        os.kill(somebody.process.pid, signal.SIGWINCH)
        wait_until(lambda: somebody.type(b"stty size\r") or b"12 70" in somebody.look())


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_leaves_the_terminal_as_it_was_and_the_shell_running(
    handle: RecorderHandle, number: signal.Signals
) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        assert not termios.tcgetattr(somebody.slave)[3] & termios.ICANON
        somebody.process.send_signal(number)
        assert somebody.leave_code() == 128 + number
        assert termios.tcgetattr(somebody.slave)[3] & termios.ICANON
        assert termios.tcgetattr(somebody.slave)[3] & termios.ECHO
    assert handle.socket is not None


def test_leaving_a_full_screen_program_brings_the_own_screen_back(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        somebody.type(b"printf '\\033[?1049h\\033[?1000hfull'\r")
        somebody.wait_for(b"\x1b[?1000hfull")
        somebody.type(b"\x1cd")
        assert somebody.leave_code() == 0
        assert b"\x1b[?1049l" in somebody.seen.rpartition(b"full")[2]
        assert b"\x1b[?1000l" in somebody.seen.rpartition(b"full")[2]
    with person(handle.socket) as again:
        again.wait_for(b"full")
        assert b"\x1b[?1049h" in again.seen
        assert b"\x1b[?1000h" in again.seen


def test_a_shell_without_full_screen_programs_never_moves_the_cursor_on_leaving(
    handle: RecorderHandle,
) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        somebody.type(b"exit\r")
        somebody.leave_code()
        assert b"\x1b[?1049l" not in somebody.seen


def test_a_script_may_be_piped_in(handle: RecorderHandle) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(handle.socket)],
        input=b"echo piped-$((6*7))\n", capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert b"piped-42" in done.stdout
    assert done.returncode == 0


def test_a_recorder_that_dies_is_said_to_have(handle: RecorderHandle) -> None:
    with person(handle.socket) as somebody:
        somebody.wait_for(b"$ ")
        status = handle.status()
        assert status is not None
        os.kill(status.pid, signal.SIGKILL)
        assert somebody.leave_code() == 1
        somebody.wait_for(b"the recorder went away; the shell was hung up")


def test_without_a_recorder_it_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(NothingToAttach, match=r"no\.sock: No such file"):
        run(tmp_path / "no.sock", stdin=open(os.devnull, "rb"), stdout=open(os.devnull, "wb"))  # noqa: PTH123, SIM115
