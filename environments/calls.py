"""Calls `environments.invoke` in a process of its own and waits for its answer."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Any

import msgspec

from environments.contract import CheckReport, EnvironmentFault, Progress, ReportProgress, ScoreReport
from environments.invoke import InvokeRequest
from environments.machine.processes import end_group

_GRACE_SECONDS = 10.0
_LOG_TAIL = 2000


class CallFailed(EnvironmentFault):
    """The environment's process reported a fault of ours, or ended without an answer."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def call(request: InvokeRequest, report: ReportProgress, seconds: float | None = None) -> dict[str, Any]:
    """Return the last line of the call, e.g. `{"starter": {...}}`; it is ended after `seconds`.

    Raises:
        CallFailed: with the fault's kind.
    """
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "environments.invoke", "--channel", str(writing)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        ending = threading.Timer(seconds, process.terminate) if seconds else None
        if ending is not None:
            ending.start()
        try:
            _ask(process, request)
            answer = _listen(reading, report)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_GRACE_SECONDS)
        finally:
            if ending is not None:
                ending.cancel()
            end_group(process, _GRACE_SECONDS)
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
        said = log.read().decode(errors="replace").strip()
    if answer is None:
        raise CallFailed(
            "Died", f"the environment's process ended without an answer ({process.returncode}): {said}"
        )
    if fault := answer.get("fault"):
        raise CallFailed(fault["kind"], fault["message"])
    return answer


def score(request: InvokeRequest, report: ReportProgress, seconds: float | None = None) -> ScoreReport:
    """Return the score of one call."""
    return msgspec.convert(call(request, report, seconds)["score"], ScoreReport)


def check(request: InvokeRequest, report: ReportProgress, seconds: float | None = None) -> CheckReport:
    """Return the check of one call."""
    return msgspec.convert(call(request, report, seconds)["check"], CheckReport)


def _ask(process: subprocess.Popen[bytes], request: InvokeRequest) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(msgspec.json.encode(request, enc_hook=str))
        process.stdin.close()


def _listen(channel: int, report: ReportProgress) -> dict[str, Any] | None:
    """Read lines until the answer, the one that is not progress, or the channel's end."""
    with os.fdopen(channel, "rb") as lines:
        for line in lines:
            message = msgspec.json.decode(line, type=dict[str, Any])
            if "progress" in message:
                report(msgspec.convert(message["progress"], Progress))
            else:
                return message
    return None
