"""Knows a worker's process tree, kills the whole of it, and proves that nothing is left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from environments.worker.control import FREEZE_PAUSE, ControlGroup

_PR_SET_CHILD_SUBREAPER = 36


class Tree:
    """Everything that one worker's leader has started, however it tries to get away."""

    _live: ClassVar[set[int]] = set()
    """Leaders of all workers of this process."""

    def __init__(self, group: ControlGroup, account: int | None, *, own_namespace: bool) -> None:
        self._group, self._account, self._own_namespace = group, account, own_namespace
        self._leader: int | None = None
        self._seen: dict[int, str] = {}
        self._frozen: set[int] = set()
        self._stood: dict[int, list[str]] | None = None
        """What the processes had run when SIGSTOP had stopped them; None where the kernel's freezer has."""
        if not own_namespace and account is None:
            _adopt_orphans()
        self._before = set() if own_namespace else descendants(os.getpid())

    def led_by(self, leader: int) -> None:
        self._leader = leader
        self._live.add(leader)

    def look(self) -> set[int]:
        """Return the tree's processes of this moment, and remember them."""
        if self._leader is None:
            return set()
        found = self._group.members() if self._group.folders else descendants(self._leader)
        if not self._group.folders and not self._own_namespace and self._account is not None:
            found |= of_account(self._account)  # orphans are init's children by now
        for pid in found:
            self._seen.setdefault(pid, _born(pid))
        return found

    def strike(self) -> None:
        """Kill what is there at this moment."""
        for pid in self.look():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self, seconds: float = 5.0) -> bool:
        """Stop all processes, by the kernel's freezer where there is one; whether all of them stand still.

        Else with SIGSTOP, until two looks in a row find the same processes and none of them running. One look is not
        enough: a process may start another and end before its state is read, on and on. A process may also have set a
        timer that sends it SIGCONT: `stayed_frozen` tells.
        """
        deadline = time.monotonic() + seconds
        if self._group.freeze(seconds):
            # One that was thawed a moment ago may be on its way back into the freezer, without having run its own code.
            while any("R" in _thread_states(pid) for pid in self.look()) and time.monotonic() < deadline:
                time.sleep(FREEZE_PAUSE)
            return True
        before: set[int] | None = None
        while True:
            found = self.look()
            running = {pid for pid in found if not _is_still(pid)}
            if not running and found == before:
                self._stood = _switches(found)
                return True
            for pid in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            self._frozen |= running
            before = None if running else found
            if time.monotonic() > deadline:
                return False

    def stayed_frozen(self) -> bool:
        """Whether nothing has run since `freeze`."""
        return self._stood is None or _switches(self.look()) == self._stood

    def thaw(self) -> None:
        """Let what was stopped run on."""
        self._stood = None
        self._group.thaw()
        for pid in self._frozen:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)
        self._frozen.clear()

    @property
    def seen(self) -> set[int]:
        """Every process id noticed so far."""
        return set(self._seen)

    def finish(self, seconds: float = 10.0) -> tuple[str, int]:
        """Kill the tree; return (what proves that it is empty, how many processes survive).

        A process id namespace dies with its first process, by the kernel's promise; its processes as seen from outside
        are looked for as well.
        """
        if self._leader is None:
            return "nothing-started", 0
        self.look()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, signal.SIGKILL)
        try:
            if self._group.folders:
                return "cgroup", self._group.kill(seconds)
            if self._own_namespace:
                return "pid-namespace", kill_until_gone(self._seen_alive, seconds)
            if self._account is not None:
                account = self._account
                return "account", kill_until_gone(lambda: of_account(account), seconds)
            return "descendants", kill_until_gone(self._adopted, seconds)
        finally:
            self._live.discard(self._leader)

    def _seen_alive(self) -> set[int]:
        return {pid for pid, born in self._seen.items() if born and _born(pid) == born}

    def _adopted(self) -> set[int]:
        """Return what is new below us, in a session of its own, and no other worker's."""
        others = {pid for leader in self._live - {self._leader} for pid in (leader, *descendants(leader))}
        found = set()
        for pid in descendants(os.getpid()) - self._before - others:
            fields = _stat_fields(pid)
            if fields and int(fields[3]) != os.getsid(0):
                found.add(pid)
                if fields[0] == "Z" and pid != self._leader:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
        return found


def descendants(of: int) -> set[int]:
    """Return the process ids below `of`."""
    children: dict[int, list[int]] = {}
    for pid in _every_process():
        if fields := _stat_fields(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    waiting = [of]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def of_account(account: int) -> set[int]:
    """Return the processes that run under `account`."""
    found = set()
    for pid in _every_process():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid == account:
                found.add(pid)
    return found


def uses_more_than(pids: set[int], limit: float) -> bool:
    """Whether `pids` together hold more than `limit` bytes, shared pages counted once.

    The cheap sum counts shared pages for each process; only where that is too much is the kernel asked to share them out.
    """
    return sum(map(_resident_bytes, pids)) > limit and sum(map(_proportional_bytes, pids)) > limit


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident_bytes(pid)
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def kill_until_gone(find: Callable[[], set[int]], seconds: float) -> int:
    """Kill what `find` returns until it finds nothing but corpses; return how many remain after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while pids := {pid for pid in find() if not _is_zombie(pid)}:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return len(pids)
        time.sleep(pause)  # the kernel is tearing processes down
        pause = min(pause * 2, 0.1)
    return 0


def _adopt_orphans() -> None:
    """Let orphaned descendants become children of this process, so that none slips away unseen."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _every_process() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_zombie(pid: int) -> bool:
    return _thread_states(pid) <= {"Z", "X"}


def _is_still(pid: int) -> bool:
    """Whether a process is stopped or dead: it computes nothing."""
    return _thread_states(pid) <= {"T", "t", "Z", "X"}


def _switches(pids: set[int]) -> dict[int, list[str]]:
    """Return how often each process's threads have been on and off a processor; none of it changes in a stopped process."""
    found: dict[int, list[str]] = {}
    for pid in pids:
        counts = found.setdefault(pid, [])
        with contextlib.suppress(OSError):
            for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
                lines = (task / "status").read_text().splitlines()
                counts += [line for line in lines if "ctxt_switches" in line or line.startswith("State:")]
    return found


def _thread_states(pid: int) -> set[str]:
    """Return the states of all threads; a process whose first one has ended looks dead and may run on."""
    states = set()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states


def _born(pid: int) -> str:
    """Return the moment a process began, which tells it from a later one with its id; empty if it is gone."""
    fields = _stat_fields(pid)
    return fields[19] if fields else ""


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name: state, parent, group, session, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
