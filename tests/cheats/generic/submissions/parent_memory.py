"""Reads the memory of its parents and of the host. Seen: pygpubench PR 7, /proc/<parent>/mem. Expected: harmless."""

import contextlib
import json
import os
from pathlib import Path

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def predict(xs):
    for pid in {os.getppid(), 1, TARGETS["host_pid"]}:
        with contextlib.suppress(OSError, ValueError):
            start = int(Path(f"/proc/{pid}/maps").read_text().split("-")[0], 16)
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                memory.seek(start)
                if memory.read(16):
                    print("GOT memory of", pid)
    return [14.0 for _ in xs]
