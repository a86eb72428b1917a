"""What this machine has, found by looking and by trying."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from environments.machine.bubblewrap import Tried, try_bubblewrap
from environments.machine.hardware import usable_cpus, usable_memory
from sessions.telemetry.backends import GpuBackend, machine_backend
from sessions.telemetry.samples import Gpu


class Terminal(msgspec.Struct, frozen=True):
    interactive: bool
    utf8: bool
    colours: int
    columns: int
    rows: int


class Machine(msgspec.Struct, frozen=True):
    """Everything `doctor` and a profile's needs ask about."""

    system: str
    python: str
    cpus: int
    """Cores this process may use, by affinity and control group."""
    memory_bytes: int
    disk_free: int
    """Where the sessions are kept."""
    disk_place: str
    gpus: tuple[Gpu, ...]
    gpu_problem: str | None
    programs: dict[str, str]
    """Name -> version line of those that were found."""
    packages: dict[str, str]
    """Distribution -> version of those that are installed."""
    sandbox: Tried
    root: bool
    terminal: Terminal
    load: float


def examine(
    place: Path,
    *,
    programs: Iterable[str] = (),
    packages: Iterable[str] = (),
    gpus: GpuBackend | None = None,
) -> Machine:
    """Look at this machine; `place` is where sessions will be kept."""
    devices, problem = read_gpus(gpus)
    wanted = dict.fromkeys(("git", "tmux", *programs))
    return Machine(
        system=sys.platform,
        python=".".join(map(str, sys.version_info[:3])),
        cpus=usable_cpus(),
        memory_bytes=usable_memory(),
        disk_free=shutil.disk_usage(_existing(place)).free,
        disk_place=str(place),
        gpus=devices,
        gpu_problem=problem,
        programs={name: line for name in wanted if (line := program_version(name)) is not None},
        packages={name: v for name in ("torch", *packages) if (v := package_version(name)) is not None},
        sandbox=try_bubblewrap(),
        root=os.geteuid() == 0,
        terminal=_terminal(),
        load=os.getloadavg()[0],
    )


def read_gpus(backend: GpuBackend | None = None) -> tuple[tuple[Gpu, ...], str | None]:
    """Return the GPUs, and why they could not be read."""
    try:
        return (backend or machine_backend()).read(), None
    except Exception as error:  # noqa: BLE001 - a driver in trouble raises what it likes
        return (), f"{type(error).__name__}: {error}"


def _existing(place: Path) -> Path:
    while not place.exists():
        place = place.parent
    return place


def program_version(name: str) -> str | None:
    """Return the first line a program says of its version, or None where there is none."""
    path = shutil.which(name)
    if path is None:
        return None
    flag = "-V" if name == "tmux" else "--version"
    try:
        said = subprocess.run([path, flag], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    lines = (said.stdout or said.stderr).strip().splitlines()
    return lines[0] if lines and said.returncode == 0 else f"does not start (exit code {said.returncode})"


def package_version(name: str) -> str | None:
    """Return a distribution's version without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _terminal() -> Terminal:
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    encoding = re.sub(r"[^a-z0-9]", "", (sys.stdout.encoding or "").lower())
    columns, rows = shutil.get_terminal_size()
    return Terminal(interactive, encoding == "utf8", _colours(), columns, rows)


def _colours() -> int:
    if os.environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return 1 << 24
    term = os.environ.get("TERM", "dumb")
    if term in {"", "dumb"}:
        return 0
    return 256 if "256" in term else 8
