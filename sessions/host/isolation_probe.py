"""Runs where the participant's commands run, and tries to reach what they must not; prints what it managed.

Its source is piped into an interpreter, because the participant may be unable to read our files; the question is its
one argument. Standard library only.
"""

from __future__ import annotations

import json
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path


def reach(path: Path) -> str | None:
    """Read a byte, list a folder, or connect to a socket."""
    mode = path.stat().st_mode
    if stat.S_ISSOCK(mode):
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(2)
            end.connect(str(path))
        return "connected"
    if stat.S_ISDIR(mode):
        return "listed" if any(path.iterdir()) else None
    with path.open("rb") as file:
        return "read" if stat.S_ISREG(mode) and file.read(1) else None


def read_memory(process: Path) -> str | None:
    """Read another process's memory, as a debugger would."""
    start = int((process / "maps").read_text().split("-")[0], 16)
    with (process / "mem").open("rb", buffering=0) as memory:
        memory.seek(start)
        return "read" if memory.read(1) else None


def tries(question: dict[str, object]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    targets = question["targets"]
    assert isinstance(targets, list)
    for target in targets:
        yield target["name"], partial(reach, Path(target["path"]))
    host = Path(f"/proc/{question['host']}")
    yield "the host's memory", partial(read_memory, host)
    yield "the host's environment variables", partial(reach, host / "environ")


def main() -> None:
    results = []
    for name, attempt in tries(json.loads(sys.argv[1])):
        try:
            managed = attempt()
            said = managed or "nothing there"
        except (OSError, ValueError) as error:
            managed, said = None, getattr(error, "strerror", None) or str(error)
        results.append({"name": name, "reached": managed is not None, "said": said})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
