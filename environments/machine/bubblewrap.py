"""bubblewrap: whether it works here, found by trying, and the words of its command line that every sandbox of ours uses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROGRAM = "bwrap"
_TRY_SECONDS = 10
_OTHER_CARDS = ("/dev/kfd", "/dev/dri")
_PERMS_SINCE, _SIZE_SINCE, _DISABLE_USERNS_SINCE = (0, 5), (0, 7), (0, 8)


class Tried(NamedTuple):
    """What came of trying."""

    program: str | None
    version: tuple[int, ...] = ()
    problem: str | None = None
    """Why no sandbox can be made, or None."""

    @property
    def shown_version(self) -> str:
        return ".".join(map(str, self.version))


class Bubblewrap(NamedTuple):
    """A `bwrap` that works here."""

    program: str
    version: tuple[int, ...]

    def mode(self, mode: str) -> list[str]:
        """Return what gives the next folder made its mode."""
        return ["--perms", mode] if self.version >= _PERMS_SINCE else []

    def size(self, limit: float) -> list[str]:
        """Return what limits the next `tmpfs` to so many bytes."""
        return ["--size", str(int(limit))] if self.version >= _SIZE_SINCE else []

    def tmpfs(self, path: str, mode: str, limit: float) -> list[str]:
        return [*self.mode(mode), *self.size(limit), "--tmpfs", path]

    def parents(self, path: str) -> list[str]:
        """Make the folders above `path` ourselves: bubblewrap would copy an owner-only mode from a source."""
        return [
            word
            for parent in list(Path(path).parents)[-2::-1]
            for word in (*self.mode("0755"), "--dir", str(parent))
        ]

    def no_more_namespaces(self) -> list[str]:
        """Return what keeps programs inside from making user namespaces of their own."""
        return ["--disable-userns"] if self.version >= _DISABLE_USERNS_SINCE else []


@cache
def try_bubblewrap(*, own_network: bool = True) -> Tried:
    """Run `true` in a sandbox: only trying tells whether the kernel lets us.

    Args:
        own_network: whether the sandbox is to have no network but itself, as a worker's.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        return Tried(None, problem="bubblewrap is not installed")
    command = [program, *own_processes(), "--die-with-parent", *(["--unshare-net"] if own_network else []),
               *read_only("/"), "--proc", "/proc", "--dev", "/dev", "true"]  # fmt: skip
    try:
        said = _run(program, "--version")
        version = tuple(int(number) for number in re.findall(r"\d+", said.stdout))
        tried = _run(*command)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Tried(program, problem=str(error))
    problem = None if tried.returncode == 0 else tried.stderr.strip() or f"exit code {tried.returncode}"
    return Tried(program, version, problem)


def bubblewrap(*, own_network: bool = True) -> Bubblewrap | None:
    """Return the machine's bubblewrap if it can really make a sandbox."""
    tried = try_bubblewrap(own_network=own_network)
    if tried.program is None or tried.problem is not None:
        return None
    return Bubblewrap(tried.program, tried.version)


def own_processes() -> list[str]:
    """Return what gives a sandbox processes of its own.

    As root, mounts need no user namespace: drop every capability instead, so that no other process can be traced.
    """
    return ["--unshare-pid", *(["--cap-drop", "ALL"] if os.geteuid() == 0 else ["--unshare-user"])]


def read_only(path: str | Path, at: str | Path | None = None) -> list[str]:
    return ["--ro-bind", str(path), str(path if at is None else at)]


def read_only_if_there(path: str | Path) -> list[str]:
    return ["--ro-bind-try", str(path), str(path)]


def writable(path: str | Path, at: str | Path | None = None) -> list[str]:
    return ["--bind", str(path), str(path if at is None else at)]


def covered(path: str | Path, *, folder: bool, empty: str | Path = "/dev/null") -> list[str]:
    """Hide a folder under an empty one, or a file under an empty file."""
    return ["--tmpfs", str(path)] if folder else read_only(empty, path)


def gpu_devices() -> list[str]:
    """Return what shows the cards' device files in a /dev of its own."""
    found = [word for device in _nvidia_devices() for word in ("--dev-bind", str(device), str(device))]
    return found + [word for node in _OTHER_CARDS for word in ("--dev-bind-try", node, node)]


def _nvidia_devices() -> Iterator[Path]:
    yield from sorted(Path("/dev").glob("nvidia*"))


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TRY_SECONDS)
