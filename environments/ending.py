"""Ends a child process together with all that still belongs to its group."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any


def end_group(process: subprocess.Popen[Any], grace_seconds: float = 0.0) -> None:
    """End `process`, started in a session of its own, and its group; with a grace, it is first asked and waited for."""
    if grace_seconds and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=grace_seconds)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
