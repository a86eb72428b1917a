"""Runs in the worker: starts finetune.sh and says how it ended and what it left running."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

_MOST_NAMES = 20


def answer(request: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the exit code and the names of processes that go on."""
    before = _processes()
    ended = subprocess.run(
        ["bash", "finetune.sh"], cwd=request.places["work"], stdin=subprocess.DEVNULL, check=False
    ).returncode
    left = [name for pid, name in _processes().items() if pid not in before]
    return {"code": ended, "how": _describe(ended), "left_running": left[:_MOST_NAMES]}, {}


def _describe(code: int) -> str:
    number = -code if code < 0 else code - 128
    if code < 0 or number in {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS}:
        return f"was ended by {signal.Signals(number).name}"
    return f"ended with code {code}"


def _processes() -> dict[int, str]:
    """Return this account's living processes that can be seen in here."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                if rest.split()[0] not in {"Z", "X"}:
                    found[int(entry.name)] = name[:40]
        except (OSError, IndexError):
            continue
    return found
