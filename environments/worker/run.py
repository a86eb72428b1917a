"""Starts a worker, asks it, and turns whatever happens into an outcome."""

from __future__ import annotations

import builtins
import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from environments.contract import ReportProgress
from environments.worker import confine
from environments.worker.jobs import (
    Answered,
    Confinement,
    Failed,
    FailureKind,
    Level,
    WorkerJob,
    WorkerOutcome,
)
from environments.worker.messages import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Message,
    ProtocolBroken,
)
from environments.worker.output import ProgressFilter, printable
from environments.worker.process import WorkerProcess

_END_SECONDS = 5.0


def run_untrusted(
    job: WorkerJob,
    report: ReportProgress | None = None,
    *,
    masks: tuple[Path, ...] = (),
    level: Level | None = None,
) -> WorkerOutcome:
    """Run one job in a worker of its own, which is gone when this returns.

    `masks` come on top of the job's; `level` forces a weaker confinement (for tests).

    Raises:
        WorkerUnavailable: nothing of the participant's ran, so nothing can be held against them.
    """
    with open_worker(job, report, masks=masks, level=level) as worker:
        outcome = worker.ask(job.body, job.blobs)
        return worker.concluded(outcome)


@contextlib.contextmanager
def open_worker(
    job: WorkerJob,
    report: ReportProgress | None = None,
    *,
    masks: tuple[Path, ...] = (),
    level: Level | None = None,
) -> Iterator[Worker]:
    """Start a worker and keep it for several questions; it is killed on the way out.

    Raises:
        WorkerUnavailable: as `run_untrusted`.
    """
    worker = Worker(job, report or (lambda _progress: None), masks, level or confine.best_level())
    try:
        worker.start()
        yield worker
    finally:
        worker.close()


class Worker:
    """One live worker. Made by `open_worker`."""

    def __init__(self, job: WorkerJob, report: ReportProgress, masks: tuple[Path, ...], level: Level) -> None:
        self._job = job
        self._progress = ProgressFilter(report)
        self._process = WorkerProcess(job, masks, level)
        self._channel: Channel | None = None
        self._asked = (0.0, 0.0)

    def start(self) -> None:
        """Start the process and wait until our own part of it is ready."""
        self._channel = self._process.start()

    def close(self) -> None:
        """Kill whatever is left, prove it, and remove the worker's traces. Safe to call twice."""
        self._process.close()

    def confinement(self) -> Confinement:
        """Return what is in force; complete only once the worker is closed."""
        return self._process.confinement()

    def ask(
        self, body: Mapping[str, Any], blobs: Mapping[str, bytes], seconds: float | None = None
    ) -> WorkerOutcome:
        """Put one request and wait for its one answer, `seconds` at most (default: the job's limit)."""
        return self.post(body, blobs, seconds) or self.collect()

    def post(
        self, body: Mapping[str, Any], blobs: Mapping[str, bytes], seconds: float | None = None
    ) -> Failed | None:
        """Put one request without waiting; `collect` fetches its answer, due `seconds` from now."""
        assert self._channel is not None
        limit = self._job.limits.seconds if seconds is None else seconds
        began = time.monotonic()
        self._asked = (began, limit)
        if self._channel.has_unread():
            return self._failed(
                FailureKind.PROTOCOL, "the submission wrote to the scorer's channel unasked", began
            )
        try:
            self._channel.send(Message("request", dict(body), dict(blobs)), began + limit)
        except DeadlinePassed:
            return self._failed(FailureKind.TIMEOUT, f"no answer within {limit:g} s", began)
        except ChannelClosed:
            return self._ended(began)
        return None

    def has_said_something(self) -> bool:
        """Whether the worker has written to its channel, or is gone: `collect` would not wait long."""
        assert self._channel is not None
        return self._channel.has_unread() or self._process.is_gone()

    def collect(self) -> WorkerOutcome:
        """Wait for the answer to what was posted."""
        began, limit = self._asked
        try:
            message = self._next_answer(began + limit)
        except DeadlinePassed:
            return self._failed(FailureKind.TIMEOUT, f"no answer within {limit:g} s", began)
        except ProtocolBroken as error:
            return self._failed(FailureKind.PROTOCOL, f"the submission's answer was refused: {error}", began)
        except ChannelClosed:
            return self._ended(began)
        if message.kind == "raised":
            return self._raised(message.body, began)
        return Answered(
            message.body, message.blobs, time.monotonic() - began, self._process.log, self.confinement()
        )

    def freeze(self) -> Failed | None:
        """Stop every process of the worker; returns once none can run, or why they cannot be stopped. `thaw` undoes it."""
        began = time.monotonic()
        if self._process.tree.freeze():
            return None
        message = "the submission kept starting processes, so that it could not be stopped between two calls"
        return self._failed(FailureKind.PROTOCOL, message, began)

    def stayed_frozen(self) -> Failed | None:
        """Return why the worker did not stand still since `freeze`, if it did not."""
        if self._process.tree.stayed_frozen():
            return None
        return self._failed(
            FailureKind.PROTOCOL, "the submission woke itself while it was stopped", time.monotonic()
        )

    def thaw(self) -> None:
        self._process.tree.thaw()

    def concluded(self, outcome: WorkerOutcome) -> WorkerOutcome:
        """Hang up, close the worker, and return `outcome` with the proof of emptiness in it.

        Our side in the worker ends at once when we hang up. If more comes instead, or nothing ends, the answer was not
        sent by it when the participant's code had returned, and does not count.
        """
        if isinstance(outcome, Answered):
            outcome = self._refused_if_not_over(outcome)
        self.close()
        changes: dict[str, Any] = {"confinement": self.confinement(), "log": self._process.log}
        if isinstance(outcome, Answered):
            changes["seconds_until_gone"] = self._process.gone_at - self._asked[0]
        return type(outcome)(**{**vars(outcome), **changes})

    def _refused_if_not_over(self, answered: Answered) -> WorkerOutcome:
        assert self._channel is not None
        began = time.monotonic() - answered.seconds
        self._channel.hang_up()
        try:
            self._channel.receive(time.monotonic() + _END_SECONDS)
        except ChannelClosed:
            return answered
        except DeadlinePassed:
            return self._failed(FailureKind.PROTOCOL, "an answer was sent before the work was over", began)
        except ProtocolBroken as error:
            return self._failed(FailureKind.PROTOCOL, f"after its answer the submission sent {error}", began)
        return self._failed(FailureKind.PROTOCOL, "more than one answer was sent", began)

    def _next_answer(self, deadline: float) -> Message:
        """Return the answer, passing progress on as what it is: text from an untrusted process."""
        assert self._channel is not None
        while True:
            message = self._channel.receive(deadline)
            if message.kind == "progress":
                self._progress.take(message.body)
            elif message.kind in ("answer", "raised"):
                return message
            else:
                raise ProtocolBroken(f"a message of kind {message.kind[:40]!r}")

    def _raised(self, body: dict[str, Any], began: float) -> Failed:
        where = self._place(body.get("where"))
        if body.get("memory") is True:
            return self._failed(FailureKind.OUT_OF_MEMORY, "the submission ran out of memory", began, where)
        name, text = printable(body.get("type"), 60), printable(body.get("text"), 500)
        if self._job.discreet:  # the type's name and the text may both carry what the code was given
            said = name if name in vars(builtins) else "an exception of its own"
        else:
            said = f"{name}: {text}" if text else name
        return self._failed(FailureKind.CRASHED, f"the submission raised {said}", began, where)

    def _place(self, where: object) -> str | None:
        """Return `model.py:41` if there is such a file; anything else the worker says is dropped."""
        if not isinstance(where, str):
            return None
        match = re.fullmatch(r"([^\0\n]{1,300}):(\d{1,7})", where)
        if match is None or ".." in Path(match[1]).parts:
            return None
        return where if any((m.source / match[1]).is_file() for m in self._job.mounts.values()) else None

    def _ended(self, began: float) -> Failed:
        kind, message = self._process.why_it_ended()
        return self._failed(kind, message, began)

    def _failed(self, kind: FailureKind, message: str, began: float, where: str | None = None) -> Failed:
        seconds = time.monotonic() - began
        self.close()
        return Failed(kind, message, seconds, self._process.log, self.confinement(), where)
