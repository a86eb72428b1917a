"""Finds programs at work in the work tree that no recorder records: shells, editors and what they started.

A hint for the proctor, never a verdict: it looks every few seconds at what is there at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from environments.machine.processes import Process, all_processes, born

RECORDING_VARIABLE = "REBENCH_RECORDING"
"""Set in a recorded shell, so that what it leaves in the background is known as its own: `SESSION/NUMBER`."""
_MOST = 64


class ForeignShell(msgspec.Struct, frozen=True):
    """A terminal, or a group of programs without one, that works in the work tree unrecorded."""

    pid: int
    """Leader of the process session where it can be seen, else the program found."""
    command: str
    tty: str | None
    user: int
    found: int
    """The process whose working folder lies in the work tree."""
    found_command: str


def foreign_shells(
    work_tree: Path, *, ours: Collection[int], session: str = "", proc: Path = Path("/proc")
) -> tuple[ForeignShell, ...]:
    """Return those there now, one per terminal or process session, by process id.

    `ours` are the host, its recorders and its workers: they and their descendants are recorded or known. `session`
    names what a descendant's environment would say of a shell that has since ended. Processes of users one may not
    look at are not seen.
    """
    processes = {p.pid: p for p in all_processes(proc) if p.state not in "ZX"}
    known: dict[int, bool] = dict.fromkeys(ours, True)
    root = os.path.realpath(work_tree)
    found: dict[int, ForeignShell] = {}
    for process in processes.values():
        if process.session in found or _descends(process, processes, known):
            continue
        if not _inside(proc, process.pid, root) or _marked(proc, process.pid, session):
            continue
        leader = processes.get(process.session, process)
        if known.get(leader.pid):
            continue
        with suppress(OSError):
            found[process.session] = ForeignShell(
                leader.pid, _command(proc, leader.pid), _terminal(process.tty),
                (proc / str(process.pid)).stat().st_uid, process.pid, _command(proc, process.pid),
            )  # fmt: skip
        if len(found) == _MOST:
            break
    return tuple(found[key] for key in sorted(found))


class ForeignWatch:
    """Remembers which were reported, so that each is told once."""

    def __init__(self, work_tree: Path, session: str = "") -> None:
        self._work_tree = work_tree
        self._session = session
        self._told: set[tuple[int, str]] = set()

    def look(self, ours: Collection[int]) -> tuple[ForeignShell, ...]:
        """Return those that are new since the last look."""
        fresh = []
        for shell in foreign_shells(self._work_tree, ours=ours, session=self._session):
            key = (shell.pid, born(shell.pid))
            if key[1] and key not in self._told:
                self._told.add(key)
                fresh.append(shell)
        return tuple(fresh)


def _descends(process: Process, processes: dict[int, Process], known: dict[int, bool]) -> bool:
    """Whether one of ours is among the process and its ancestors; remembers the answer for all on the way."""
    way: list[int] = []
    pid = process.pid
    while pid not in known and pid in processes and len(way) < len(processes):
        way.append(pid)
        pid = processes[pid].parent
    answer = known.get(pid, False)
    known.update(dict.fromkeys(way, answer))
    return answer


def _inside(proc: Path, pid: int, root: str) -> bool:
    try:
        cwd = os.readlink(proc / str(pid) / "cwd")  # noqa: PTH115
    except OSError:
        return False
    return cwd == root or cwd.startswith(root + os.sep)


def _marked(proc: Path, pid: int, session: str) -> bool:
    if not session:
        return False
    try:
        environment = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    mark = f"{RECORDING_VARIABLE}={session}/".encode()
    return any(entry.startswith(mark) for entry in environment.split(b"\0"))


def _command(proc: Path, pid: int) -> str:
    words = (proc / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    return " ".join(word.decode(errors="replace") for word in words)[:512]


def _terminal(number: int) -> str | None:
    """Return a terminal's name from its device number, as the kernel packs it."""
    if not number:
        return None
    major, minor = number >> 8 & 0xFFF, (number & 0xFF) | (number >> 12 & 0xFFF00)
    return f"/dev/pts/{minor + 256 * (major - 136)}" if 136 <= major <= 143 else f"/dev/tty{minor}"
