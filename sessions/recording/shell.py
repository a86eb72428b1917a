"""A program in a terminal of its own: started, resized, written to, and ended with all it started."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
import time
from contextlib import suppress
from pathlib import Path

from environments.machine.processes import (
    births,
    descendants,
    of_session,
    send,
    send_to_group,
    still_alive,
)


class ShellNotStarted(OSError):
    """The program could not be started; the message says which and why."""


class Shell:
    """A child process that leads its own session on a new terminal.

    Raises:
        ShellNotStarted: the program is not there or not executable.
    """

    def __init__(
        self,
        argv: list[str],
        *,
        cwd: Path,
        environment: dict[str, str],
        size: tuple[int, int],
        terminal_owner: int | None = None,
    ) -> None:
        told, tell = os.pipe2(os.O_CLOEXEC)
        self.master, slave = pty.openpty()
        set_size(self.master, *size)
        if terminal_owner is not None:
            os.fchown(slave, terminal_owner, -1)
        self.pid = os.fork()
        if self.pid == 0:
            _become(argv, cwd, environment, slave, tell)
        os.close(slave)
        os.close(tell)
        with os.fdopen(told, "rb") as report:
            problem = report.read().decode(errors="replace")
        if problem:
            os.waitpid(self.pid, 0)
            os.close(self.master)
            raise ShellNotStarted(f"{argv[0]} could not be started in {cwd}: {problem}")
        os.set_blocking(self.master, False)
        self.pidfd = os.pidfd_open(self.pid)

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed: off for passwords, and for programs that draw themselves."""
        try:
            return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)
        except termios.error:
            return False

    def resize(self, rows: int, cols: int) -> None:
        with suppress(OSError):
            set_size(self.master, rows, cols)

    def nudge(self) -> None:
        """Make the program in front draw itself anew, as a change of size would."""
        with suppress(OSError):
            os.killpg(os.tcgetpgrp(self.master), signal.SIGWINCH)

    def wait(self) -> int:
        """Return the exit code of a program that ended, as a shell would give it: 128 + n for signal n."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return 128 - code if code < 0 else code

    def hang_up(self) -> None:
        """Tell the program and whatever stands in front that the terminal is going."""
        groups = {self.pid}
        with suppress(OSError):
            groups.add(os.tcgetpgrp(self.master))
        for group in groups:
            send_to_group(group, signal.SIGHUP)
            send_to_group(group, signal.SIGCONT)

    def kill(self, patience: float = 2.0) -> None:
        """End the program and every descendant that did not leave on being hung up."""
        others = births(self.family() - {self.pid})
        self.hang_up()
        deadline = time.monotonic() + patience
        while (still_alive(others) or not self.ended()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in still_alive(others):
            send(pid, signal.SIGKILL)
        if not self.ended():
            send_to_group(self.pid, signal.SIGKILL)

    def family(self) -> set[int]:
        """Return the program, its descendants and whoever else is in its terminal session."""
        return {self.pid, *descendants(self.pid), *of_session(self.pid)}

    def ended(self) -> bool:
        """Whether the program has ended, without collecting its exit code."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True


def set_size(fd: int, rows: int, cols: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def _become(argv: list[str], cwd: Path, environment: dict[str, str], slave: int, tell: int) -> None:
    """Turn the forked child into the program, or report why not and leave."""
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.chdir(cwd)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(argv[0], argv, environment)  # noqa: S606
    except BaseException as error:  # noqa: BLE001  (nothing of the parent may go on in the child)
        with suppress(OSError):
            os.write(tell, f"{getattr(error, 'strerror', None) or error}".encode())
    finally:
        os._exit(127)
