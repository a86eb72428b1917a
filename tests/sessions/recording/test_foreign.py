"""Programs in the work tree that nobody records are found; those that somebody does are not."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sessions.recording.foreign import ForeignWatch, foreign_shells
from sessions.recording.handle import Recorders
from sessions.recording.recorder import boottime
from tests.sessions.recording_support import FakeTerminal, shell_request
from tests.waiting import wait_until


@contextmanager
def shell_in(
    folder: Path, *, terminal: bool = True, environment: dict[str, str] | None = None
) -> Iterator[int]:
    """A shell that waits in a folder, in a terminal of its own or without one; yields its process id."""
    words = ["/bin/sh", "-c", "cd " + str(folder) + "; echo ready; read wait"]
    if not terminal:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=environment
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.communicate()
        return
    pid, master = pty.fork()
    if pid == 0:
        os.execve(words[0], words, environment or dict(os.environ))
    os.read(master, 5)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


def test_a_shell_of_the_participants_own_in_the_work_tree_is_found(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    with shell_in(tmp_path / "deep" / "er") as pid:
        (found,) = foreign_shells(tmp_path, ours=())
        assert found.pid == pid
        assert found.tty is not None
        assert found.tty == psutil.Process(pid).terminal()
        assert found.command.startswith("/bin/sh -c cd")
        assert found.user == os.getuid()


def test_a_shell_elsewhere_is_nobodys_business(tmp_path: Path) -> None:
    for name in ("work", "work-and-more"):
        (tmp_path / name).mkdir()
    with shell_in(tmp_path / "work-and-more"):
        assert foreign_shells(tmp_path / "work", ours=()) == ()


def test_a_program_without_a_terminal_is_found_too(tmp_path: Path) -> None:
    with shell_in(tmp_path, terminal=False) as pid:
        (found,) = foreign_shells(tmp_path, ours=())
        assert (found.pid, found.tty) == (pid, None)


def test_descendants_of_ours_are_not_foreign(tmp_path: Path) -> None:
    with shell_in(tmp_path):
        assert foreign_shells(tmp_path, ours={os.getpid()}) == ()


def test_what_a_recorded_shell_left_in_the_background_is_known_by_its_mark(tmp_path: Path) -> None:
    marked = {**os.environ, "REBENCH_RECORDING": "s-1/4"}
    with shell_in(tmp_path, terminal=False, environment=marked):
        assert foreign_shells(tmp_path, ours=(), session="s-1") == ()
        assert len(foreign_shells(tmp_path, ours=(), session="s-2")) == 1


def test_a_work_tree_named_by_a_link_is_the_same_work_tree(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    with shell_in(tmp_path / "work"):
        assert len(foreign_shells(tmp_path / "link", ours=())) == 1


def test_each_is_told_once(tmp_path: Path) -> None:
    watch = ForeignWatch(tmp_path)
    assert watch.look(()) == ()
    with shell_in(tmp_path) as first:
        assert [shell.pid for shell in watch.look(())] == [first]
        assert watch.look(()) == ()
        with shell_in(tmp_path) as second:
            assert [shell.pid for shell in watch.look(())] == [second]


def test_a_name_made_to_confuse_is_read_rightly(tmp_path: Path) -> None:
    program = tmp_path / ") S 1 1 1 (sh"
    program.symlink_to(sys.executable)
    process = subprocess.Popen(
        [str(program), "-c", "print('ready', flush=True); input()"], cwd=tmp_path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    with suppress(BrokenPipeError):
        (found,) = foreign_shells(tmp_path, ours=())
        assert found.pid == process.pid
    process.communicate()


async def test_recorded_shells_are_not_foreign_and_others_beside_them_are(tmp_path: Path) -> None:
    recorders = Recorders(tmp_path / "recordings", boottime=boottime)
    work = tmp_path / "work"
    work.mkdir()
    handle = await recorders.start(shell_request(work))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"sh\n")
    terminal.wait_for(b"sh\r\n$ ")
    status = handle.status()
    assert status is not None
    assert foreign_shells(work, ours={status.pid}) == ()
    with shell_in(work) as pid:
        wait_until(lambda: [s.pid for s in foreign_shells(work, ours={status.pid})] == [pid])
    await recorders.stop()
