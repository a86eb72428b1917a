"""Kills a worker's whole process tree and proves that nothing is left of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from environments.worker.control import ControlGroup

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Let orphaned descendants become children of this process, so that none slips away unseen."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(of: int) -> set[int]:
    """Return the process ids below `of`."""
    children: dict[int, list[int]] = {}
    for pid in _every_process():
        if (parent := _parent(pid)) is not None:
            children.setdefault(parent, []).append(pid)
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
            if Path(f"/proc/{pid}").stat().st_uid == account and not _is_zombie(pid):
                found.add(pid)
    return found


def resident_bytes(pids: set[int]) -> int:
    """Return the resident memory of `pids` together."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE")


def kill_until_gone(find: Callable[[], set[int]], seconds: float = 10.0) -> int:
    """Kill what `find` returns until it finds nothing; return how many remain after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while pids := {p for p in find() if not _is_zombie(p)}:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return len(pids)
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
    return 0


def finish(
    leader: int, group: ControlGroup, account: int | None, own_namespace: bool, known: set[int]
) -> tuple[str, int]:
    """Kill the tree led by `leader`; return (what proves that it is empty, how many survive).

    A process id namespace dies with its first process, by the kernel's promise; `known` holds its processes as seen
    from outside and is checked as well.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    if group.folders:
        return "cgroup", group.kill()
    if own_namespace:
        return "pid-namespace", kill_until_gone(lambda: {p for p in known if _exists(p)})
    if account is not None:
        return "account", kill_until_gone(lambda: of_account(account))
    me = os.getpid()
    return "descendants", kill_until_gone(lambda: (known | descendants(leader)) & descendants(me))


def _every_process() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _parent(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else None


def _is_zombie(pid: int) -> bool:
    fields = _stat_fields(pid)
    return not fields or fields[0] in ("Z", "X")


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name: state, parent, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
