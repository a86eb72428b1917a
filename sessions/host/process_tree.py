"""Signals to a command and all its descendants: sandboxes and daemons leave the process group."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil


def signal_tree(root: int, number: signal.Signals) -> None:
    """Send a signal to a process and all its descendants, parents first."""
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(root)
        for process in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)


def kill_tree(root: int) -> None:
    """Kill a process that leads a group, all its descendants, and what is left of the group."""
    signal_tree(root, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(root, signal.SIGKILL)
