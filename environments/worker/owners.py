"""Names what a worker leaves on the machine after the process that owns it, so that a killed owner's things can be swept."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

from environments.machine.processes import born

PREFIX = "rebench-worker-"


def owned_name() -> str:
    """Return a fresh name that says which process it belongs to, and when that process began."""
    return f"{PREFIX}{os.getpid()}-{born(os.getpid())}-{_namespace()}-{secrets.token_hex(4)}"


def is_orphaned(name: str) -> bool:
    """Whether `name` is one of ours and its owner is gone.

    A later process with the same id is not the owner; an owner in another process namespace cannot be judged from here.
    """
    parts = name.removeprefix(PREFIX).split("-")
    if not name.startswith(PREFIX) or len(parts) != 4 or not parts[0].isdigit():
        return False
    return parts[2] == _namespace() and born(int(parts[0])) != parts[1]


def sweep_folders(base: Path) -> None:
    """Delete the folders in `base` whose owners are gone."""
    for folder in base.glob(f"{PREFIX}*"):
        if is_orphaned(folder.name) and not folder.is_symlink() and folder.stat().st_uid == os.getuid():
            remove(folder)


def remove(tree: Path) -> None:
    """Delete what an untrusted process may have filled, however deep its folders and whatever their modes.

    The system's own tools do it: `shutil` and `os.walk` give up on a thousand folders in each other and on long paths.
    """
    if not quietly("rm", "-rf", "--", str(tree)):
        quietly("chmod", "-R", "u+rwX", "--", str(tree))
        quietly("rm", "-rf", "--", str(tree))


def quietly(*command: str) -> bool:
    """Run a program without its output; whether it ended well."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)
