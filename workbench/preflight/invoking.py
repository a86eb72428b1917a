"""Asks an environment to prepare or to name its starter, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from environments.contract import EnvironmentFault

OnProgress = Callable[[str, float | None], None]


class InvocationFailed(EnvironmentFault):
    """The environment's process reported a fault, or ended without an answer."""


def invoke(
    action: str,
    slug: str,
    profile: str,
    *,
    home: Path,
    folder: Path | None = None,
    on_progress: OnProgress = lambda _stage, _fraction: None,
    **more: Any,
) -> dict[str, Any]:
    """Run one `prepare`, `starter`, `check` or `score` and return its answer.

    The child ends with us: on Ctrl-C it is told to stop and what it made so far stays for the next try.

    Raises:
        InvocationFailed: with the environment's own words, or the end of its output.
    """
    request = {"action": action, "slug": slug, "profile": profile, "home": str(home), **more}
    request["folder"] = None if folder is None else str(folder)
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "environments.invoke", "--channel", str(writing)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(json.dumps(request).encode())
            answer = _answer(reading, on_progress)
            process.wait()
        finally:
            _end(process)
        if answer is None:
            raise InvocationFailed(f"{action} of {slug} ({profile}) ended without an answer{_tail(output)}")
    if fault := answer.get("fault"):
        raise InvocationFailed(f"{action} of {slug} ({profile}) failed: {fault['message']}")
    (result,) = answer.values()
    return dict(result)


def _answer(descriptor: int, on_progress: OnProgress) -> dict[str, Any] | None:
    with os.fdopen(descriptor, "rb") as channel:
        for line in channel:
            message: dict[str, Any] = json.loads(line)
            if "progress" not in message:
                return message
            on_progress(message["progress"]["stage"], message["progress"]["fraction"])
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the child if it still runs; it ends its own workers on SIGTERM."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(output: Any) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - 1500))
    text = output.read().decode(errors="replace").strip()
    return f"; its output ends with:\n{text}" if text else ""
