"""Control groups: memory, process and processor limits for a whole tree, and a certain way to kill and count it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from environments.worker.owners import PREFIX, is_orphaned, owned_name

_V1_CONTROLLERS = ("memory", "pids", "cpu")
_CPU_PERIOD = 100_000
FREEZE_PAUSE = 0.0002


@dataclass
class ControlGroup:
    """The groups made for one worker; empty where the machine lets us make none."""

    folders: dict[str, Path] = field(default_factory=dict)
    """Controller (`memory`, `pids`, `cpu`, or `unified`) -> its folder; version 2 has the same folder under each."""
    version: int | None = None
    """Of the group that limits memory."""

    @classmethod
    def create(
        cls, memory_bytes: int, processes: int, cpus: float | None, roots: Roots | None = None
    ) -> ControlGroup:
        """Make the groups and set the limits; whatever cannot be made is left out."""
        roots = roots if roots is not None else Roots.of_this_process()
        sweep(roots)
        name = owned_name()
        group = cls()
        if (folder := _make_unified(roots.unified, name)) is not None:
            group.folders["unified"] = folder
            group._limit_unified(folder, memory_bytes, processes, cpus)
        for controller in _V1_CONTROLLERS:
            if controller not in group.folders and (parent := roots.v1.get(controller)) is not None:
                group._limit_v1(controller, parent / name, memory_bytes, processes, cpus)
        return group

    @property
    def join_files(self) -> list[Path]:
        """The files that a process writes 0 into to become a member."""
        return sorted({folder / "cgroup.procs" for folder in self.folders.values()})

    def members(self) -> set[int]:
        """Return the process ids in any of the groups."""
        found: set[int] = set()
        for file in self.join_files:
            with contextlib.suppress(OSError):
                found.update(int(line) for line in file.read_text().split())
        return found

    def kill(self, seconds: float = 10.0) -> int:
        """Kill every member, again until none is left; return how many remain after `seconds`."""
        deadline = time.monotonic() + seconds
        pause = 0.001
        while members := self.members():
            for folder in self.folders.values():
                with contextlib.suppress(OSError):
                    (folder / "cgroup.kill").write_text("1")
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return len(members)
            time.sleep(pause)  # the kernel is tearing processes down
            pause = min(pause * 2, 0.1)
        return 0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a member for memory."""
        folder = self.folders.get("memory")
        if folder is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                if match := re.search(r"^oom_kill (\d+)", (folder / name).read_text(), re.MULTILINE):
                    return int(match[1]) > 0
        return False

    def freeze(self, seconds: float) -> bool:
        """Stop every member with the kernel's freezer, which no signal undoes; whether it is there and has done so.

        It is in every version 2 group, whatever its controllers.
        """
        folder = self.folders.get("unified")
        if folder is None or not _write(folder / "cgroup.freeze", 1):
            return False
        deadline = time.monotonic() + seconds
        while "frozen 1" not in (folder / "cgroup.events").read_text():
            if time.monotonic() > deadline:
                self.thaw()
                return False
            time.sleep(FREEZE_PAUSE)
        return True

    def thaw(self) -> None:
        """Let what was stopped run on."""
        if (folder := self.folders.get("unified")) is not None:
            _write(folder / "cgroup.freeze", 0)

    def remove(self) -> None:
        """Remove the empty groups."""
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _limit_unified(self, folder: Path, memory_bytes: int, processes: int, cpus: float | None) -> None:
        if _write(folder / "memory.max", memory_bytes):
            _write(folder / "memory.swap.max", 0)
            _write(folder / "memory.oom.group", 1)
            self.folders["memory"], self.version = folder, 2
        if _write(folder / "pids.max", processes):
            self.folders["pids"] = folder
        if cpus is not None and _write(folder / "cpu.max", f"{int(cpus * _CPU_PERIOD)} {_CPU_PERIOD}"):
            self.folders["cpu"] = folder

    def _limit_v1(
        self, controller: str, folder: Path, memory_bytes: int, processes: int, cpus: float | None
    ) -> None:
        if controller == "cpu" and cpus is None:
            return
        try:
            folder.mkdir()
        except OSError:
            return
        limited = {
            "memory": lambda: _write(folder / "memory.limit_in_bytes", memory_bytes),
            "pids": lambda: _write(folder / "pids.max", processes),
            "cpu": lambda: _write(folder / "cpu.cfs_quota_us", int((cpus or 1) * _CPU_PERIOD)),
        }[controller]()
        if not limited:
            folder.rmdir()
            return
        if controller == "memory":
            _write(folder / "memory.memsw.limit_in_bytes", memory_bytes)
            self.version = 1
        self.folders[controller] = folder


@dataclass(frozen=True)
class Roots:
    """Where this process may try to make groups."""

    unified: tuple[Path, ...] = ()
    v1: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of_this_process(cls, proc: Path = Path("/proc/self")) -> Roots:
        """Read the hierarchies' mount points and this process's place in each."""
        try:
            places = dict(_places(proc / "cgroup"))
            mounts = list(_mounts(proc / "mountinfo"))
        except OSError:
            return cls()
        unified: list[Path] = []
        v1: dict[str, Path] = {}
        for kind, point, options in mounts:
            if kind == "cgroup2" and "" in places:
                own = Path(f"{point}{places['']}")
                unified = [p for p in (own, *own.parents) if p == point or p.is_relative_to(point)]
            for controller in _V1_CONTROLLERS:
                if kind == "cgroup" and controller in options and controller in places:
                    v1[controller] = Path(f"{point}{places[controller]}")
        return cls(tuple(unified), v1)


def sweep(roots: Roots) -> None:
    """Remove the empty groups that killed scorers left behind."""
    for parent in {*roots.unified, *roots.v1.values()}:
        for folder in parent.glob(f"{PREFIX}*"):
            if is_orphaned(folder.name):
                leftover = ControlGroup({"unified": folder})
                leftover.kill(seconds=1.0)
                leftover.remove()


def _make_unified(parents: tuple[Path, ...], name: str) -> Path | None:
    """Make a version 2 group where it gets the memory controller, or else anywhere (for killing)."""
    fallback = None
    for parent in parents:
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "memory.max").exists():
            if fallback is not None:
                fallback.rmdir()
            return folder
        if fallback is None:
            fallback = folder
        else:
            folder.rmdir()
    return fallback


def _places(file: Path) -> Iterator[tuple[str, str]]:
    """Yield (controller, path) of /proc/self/cgroup; version 2 stands under the empty name."""
    for line in file.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, "" if path == "/" else path


def _mounts(file: Path) -> Iterator[tuple[str, Path, set[str]]]:
    """Yield (file system, mount point, super options) of the cgroup mounts in /proc/self/mountinfo."""
    for line in file.read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield kind, Path(left.split(" ")[4]), set(options.split(","))


def _write(file: Path, value: object) -> bool:
    try:
        file.write_text(str(value))
    except OSError:
        return False
    return True
