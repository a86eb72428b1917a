"""Processes as the kernel lists them: who descends from whom, who is alive, and how a whole tree is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_PROC = Path("/proc")
_GONE = frozenset("ZX")
_STILL = _GONE | frozenset("Tt")


class Process(NamedTuple):
    """What `/proc/<pid>/stat` says."""

    pid: int
    state: str
    parent: int
    session: int
    tty: int
    """Device number of its terminal, as the kernel packs it; 0 for none."""
    born: str
    """Moment it began, which tells it from a later one with its id."""


def look_at(pid: int | str, proc: Path = _PROC) -> Process | None:
    """Return one process, or None where there is none."""
    try:
        with open(proc / str(pid) / "stat", "rb") as file:  # noqa: PTH123  (a thousand times a look)
            line = file.read()
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses included.
    fields = line[line.rfind(b")") + 2 :].decode().split()
    if len(fields) < 20:
        return None
    return Process(int(pid), fields[0], int(fields[1]), int(fields[3]), int(fields[4]), fields[19])


def all_processes(proc: Path = _PROC) -> Iterator[Process]:
    """Yield every process, corpses included."""
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdecimal() and (found := look_at(name, proc)) is not None:
            yield found


def born(pid: int) -> str:
    """Return the moment a process began; empty if it is gone."""
    found = look_at(pid)
    return "" if found is None else found.born


def descendants(of: int) -> list[int]:
    """Return the process ids below `of`, parents before their children."""
    children: dict[int, list[int]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process.pid)
    found: dict[int, None] = {}
    waiting = [of]
    for parent in waiting:
        fresh = [child for child in children.get(parent, ()) if child not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return list(found)


def of_session(leader: int) -> set[int]:
    """Return the processes of the session that `leader` leads: those in its terminal."""
    return {process.pid for process in all_processes() if process.session == leader}


def of_account(account: int) -> set[int]:
    """Return the processes that run under `account`."""
    found = set()
    for process in all_processes():
        with contextlib.suppress(OSError):
            if (_PROC / str(process.pid)).stat().st_uid == account:
                found.add(process.pid)
    return found


def thread_states(pid: int) -> set[str]:
    """Return the states of all threads; a process whose first one has ended looks dead and may run on."""
    states = set()
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states


def is_dead(pid: int) -> bool:
    """Whether a process is gone, or a corpse that nobody has buried yet."""
    return thread_states(pid) <= _GONE


def is_still(pid: int) -> bool:
    """Whether a process is stopped or dead: it computes nothing."""
    return thread_states(pid) <= _STILL


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone, or not ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def send_to_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may be gone, or not ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def signal_tree(root: int, number: signal.Signals) -> None:
    """Send a signal to a process and all its descendants, parents first: sandboxes and daemons leave the process group."""
    for pid in (root, *descendants(root)):
        send(pid, number)


def kill_tree(root: int) -> None:
    """Kill a process that leads a group, all its descendants, and what is left of the group."""
    signal_tree(root, signal.SIGKILL)
    send_to_group(root, signal.SIGKILL)


def end_group(process: subprocess.Popen[Any], grace_seconds: float = 0.0) -> None:
    """End `process`, started in a session of its own, and its group; with a grace, it is first asked and waited for."""
    if grace_seconds and process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=grace_seconds)
    send_to_group(process.pid, signal.SIGKILL)
    process.wait()


def kill_until_gone(find: Callable[[], Iterable[int]], seconds: float) -> int:
    """Kill what `find` returns until it finds nothing but corpses; return how many remain after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while pids := {pid for pid in find() if not is_dead(pid)}:
        for pid in pids:
            send(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return len(pids)
        time.sleep(pause)  # the kernel is tearing processes down
        pause = min(pause * 2, 0.1)
    return 0


def births(pids: Iterable[int]) -> dict[int, str]:
    """Return when each of these processes began, which `still_alive` tells them by later."""
    return {pid: born(pid) for pid in pids}


def still_alive(known: Mapping[int, str]) -> set[int]:
    """Return those of the known processes that live: not their corpses, nor later processes with their ids."""
    return {pid for pid, moment in known.items() if moment and born(pid) == moment and not is_dead(pid)}
