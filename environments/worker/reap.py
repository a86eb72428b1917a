"""Knows a worker's process tree, kills the whole of it, and proves that nothing is left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import ClassVar

from environments.machine.processes import (
    born,
    descendants,
    is_still,
    kill_until_gone,
    look_at,
    of_account,
    send,
    send_to_group,
    still_alive,
    thread_states,
)
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
        self._before = set() if own_namespace else set(descendants(os.getpid()))

    def led_by(self, leader: int) -> None:
        self._leader = leader
        self._live.add(leader)

    def look(self) -> set[int]:
        """Return the tree's processes of this moment, and remember them."""
        if self._leader is None:
            return set()
        found = self._group.members() if self._group.folders else set(descendants(self._leader))
        if not self._group.folders and not self._own_namespace and self._account is not None:
            found |= of_account(self._account)  # orphans are init's children by now
        for pid in found:
            self._seen.setdefault(pid, born(pid))
        return found

    def strike(self) -> None:
        """Kill what is there at this moment."""
        for pid in self.look():
            send(pid, signal.SIGKILL)

    def freeze(self, seconds: float = 5.0) -> bool:
        """Stop all processes, by the kernel's freezer where there is one; whether all of them stand still.

        Else with SIGSTOP, until two looks in a row find the same processes and none of them running. One look is not
        enough: a process may start another and end before its state is read, on and on. A process may also have set a
        timer that sends it SIGCONT: `stayed_frozen` tells.
        """
        deadline = time.monotonic() + seconds
        if self._group.freeze(seconds):
            # One that was thawed a moment ago may be on its way back into the freezer, without having run its own code.
            while any("R" in thread_states(pid) for pid in self.look()) and time.monotonic() < deadline:
                time.sleep(FREEZE_PAUSE)
            return True
        before: set[int] | None = None
        while True:
            found = self.look()
            running = {pid for pid in found if not is_still(pid)}
            if not running and found == before:
                self._stood = _switches(found)
                return True
            for pid in running:
                send(pid, signal.SIGSTOP)
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
            send(pid, signal.SIGCONT)
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
        send_to_group(self._leader, signal.SIGKILL)
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
        return still_alive(self._seen)

    def _adopted(self) -> set[int]:
        """Return what is new below us, in a session of its own, and no other worker's."""
        others = {pid for leader in self._live - {self._leader} for pid in (leader, *descendants(leader))}
        found = set()
        for pid in set(descendants(os.getpid())) - self._before - others:
            process = look_at(pid)
            if process is not None and process.session != os.getsid(0):
                found.add(pid)
                if process.state == "Z" and pid != self._leader:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
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


def _adopt_orphans() -> None:
    """Let orphaned descendants become children of this process, so that none slips away unseen."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
