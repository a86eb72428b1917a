"""The queue of scorings: one at a time, in the order of their calls, each on its snapshot."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
import traceback
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import msgspec

from environments.contract import Profile, Progress, ScoreReport, ScoreStatus
from sessions.gateway.hosted import HostedGateway
from sessions.host.scoring import GRACE_SECONDS, Answer, Call, OnProgress, Scorer
from sessions.host.wiring import Wiring
from sessions.record.events import (
    ClockResumed,
    PauseReason,
    ScoreProgressed,
    ScoreRecorded,
    SnapshotTaken,
    StartingScoreRecorded,
)
from sessions.record.log import Journal
from sessions.record.state import Phase
from sessions.record.store import Record
from sessions.snapshots import SnapshotStore, remove_checkout

PROGRESS_EVERY_SECONDS = 2.0


class ScoreQueue:
    """Scores snapshots and writes what came of them."""

    def __init__(
        self, record: Record, journal: Journal, store: SnapshotStore, scorer: Scorer, wiring: Wiring
    ) -> None:
        self._record = record
        self._journal = journal
        self._store = store
        self._scorer = scorer
        self._wiring = wiring
        self._waiting: asyncio.Queue[tuple[int, SnapshotTaken]] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._running: tuple[int, asyncio.Task[Answer]] | None = None
        self._cancelled: set[int] = set()
        self.gateway: HostedGateway | None = None

    def put(self, number: int, snapshot: SnapshotTaken) -> None:
        """Queue scoring `number` on `snapshot`."""
        self._waiting.put_nowait((number, snapshot))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    def recover(self) -> None:
        """Take up scorings that were asked for and never recorded."""
        remove_checkout(Path(self._wiring.scratch))
        taken = {snapshot.number: snapshot for snapshot in self._journal.state.snapshots}
        for row in self._journal.state.pending:
            snapshot = None if row.snapshot is None else taken.get(row.snapshot)
            if snapshot is not None and snapshot.commit is not None:
                self.put(row.number, snapshot)
            else:
                message = "the workbench stopped before the snapshot was taken; nothing counts against you"
                self._write(row.number, None, ScoreReport.rejected(ScoreStatus.INFRASTRUCTURE, message), 0.0)

    def cancel(self, number: int) -> None:
        """Drop a queued scoring, or kill a running one."""
        self._cancelled.add(number)
        if self._running is not None and self._running[0] == number:
            self._running[1].cancel()

    async def idle(self) -> None:
        """Wait until nothing is queued or running."""
        await self._waiting.join()

    async def stop(self) -> None:
        """Kill what runs, without a word in the log: it is taken up again from there."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def check(self, snapshot: SnapshotTaken) -> tuple[Answer, float]:
        """Check a snapshot, beside whatever is being scored; returns the answer and seconds."""
        began = time.monotonic()
        limits = self._profile.limits
        folder = self._record.folder / "checks" / str(snapshot.number)
        answer = await self._call("check", snapshot, folder, limits.check_seconds, lambda _: None)
        return answer, round(time.monotonic() - began, 3)

    @property
    def _profile(self) -> Profile:
        opened = self._journal.state.opened
        return opened.environment.profile(opened.profile)

    async def _work(self) -> None:
        while True:
            number, snapshot = await self._waiting.get()
            try:
                await self._score(number, snapshot)
            except OSError:
                # The log took no result: the scoring stays pending, and the next host takes it up.
                traceback.print_exc()
            finally:
                self._waiting.task_done()

    async def _score(self, number: int, snapshot: SnapshotTaken) -> None:
        began = time.monotonic()
        if snapshot.commit is None:
            answer = Answer(fault=f"no snapshot, so nothing to score: {snapshot.problem}")
        elif number in self._cancelled:
            answer = _cancelled()
        else:
            answer = await self._answered(number, snapshot)
        report = answer.score or ScoreReport.rejected(
            ScoreStatus.INFRASTRUCTURE, f"the scorer broke; this does not count against you: {answer.fault}"
        )
        self._write(number, snapshot, report, time.monotonic() - began)

    async def _answered(self, number: int, snapshot: SnapshotTaken) -> Answer:
        """Score, once more if the scorer died; what breaks on the way, as a full disk, ends this scoring and no other."""
        try:
            answer = await self._attempt(number, snapshot)
            return await self._attempt(number, snapshot) if answer.died else answer
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            return Answer(fault=f"{type(error).__name__}: {error}")

    async def _attempt(self, number: int, snapshot: SnapshotTaken) -> Answer:
        folder = self._record.score_folder(number)
        progress = _SparseProgress(self._journal, number)
        seconds = self._profile.limits.score_seconds + GRACE_SECONDS
        task = asyncio.create_task(self._call("score", snapshot, folder, seconds, progress))
        self._running = (number, task)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            if number in self._cancelled:
                return _cancelled()
            raise
        finally:
            self._running = None

    async def _call(
        self,
        action: str,
        snapshot: SnapshotTaken,
        folder: Path,
        seconds: float,
        on_progress: OnProgress,
    ) -> Answer:
        opened = self._journal.state.opened
        # A check is free and unlimited, so no model is asked for one.
        lends = self.gateway is not None and action == "score"
        access = self.gateway.lend(f"score of snapshot {snapshot.number}") if self.gateway and lends else None
        async with self._checked_out(snapshot, action) as (root, scratch):
            call = Call.on_snapshot(
                action, opened, root, scratch, self._wiring.assets, self._wiring.environment_place, access
            )
            try:
                return await self._scorer.run(call, folder, seconds, on_progress)
            finally:
                if self.gateway is not None and access is not None:
                    self.gateway.take_back(access)

    @contextlib.asynccontextmanager
    async def _checked_out(self, snapshot: SnapshotTaken, action: str) -> AsyncIterator[tuple[Path, Path]]:
        """Check a snapshot out into a folder of its own, removed afterwards."""
        place = Path(self._wiring.scratch) / f"{action}-{snapshot.number}-{secrets.token_hex(4)}"
        root, scratch = place / "snapshot", place / "scratch"
        scratch.mkdir(parents=True)
        try:
            assert snapshot.commit is not None
            await asyncio.to_thread(self._store.checkout, snapshot.commit, root)
            yield root, scratch
        finally:
            await asyncio.to_thread(remove_checkout, place)

    def _write(
        self, number: int, snapshot: SnapshotTaken | None, report: ScoreReport, seconds: float
    ) -> None:
        folder = self._record.score_folder(number)
        folder.mkdir(parents=True, exist_ok=True)
        encoded = msgspec.json.format(msgspec.json.encode(report))
        (folder / "report.json").write_bytes(encoded)
        taken = None if snapshot is None or snapshot.commit is None else snapshot
        if number == 0 and taken is not None:
            body: StartingScoreRecorded | ScoreRecorded = StartingScoreRecorded(
                snapshot=taken.number,
                commit=taken.commit or "",
                raw=report.raw,
                status=report.status,
                message=report.message,
                seconds=round(seconds, 3),
                details_sha256=sha256(encoded).hexdigest(),
            )
        else:
            body = ScoreRecorded(
                number=number,
                snapshot=None if taken is None else taken.number,
                commit=None if taken is None else taken.commit,
                raw=report.raw,
                status=report.status,
                message=report.message,
                seconds=round(seconds, 3),
                details_sha256=sha256(encoded).hexdigest(),
            )
        self._journal.append(body)
        self._let_the_clock_go_on()

    def _let_the_clock_go_on(self) -> None:
        """End the pause of an excluded scoring once nothing is left to score."""
        state = self._journal.state
        pause = state.pause
        if (
            state.phase is Phase.PAUSED
            and pause
            and pause.reason is PauseReason.SCORING
            and not state.pending
        ):
            self._journal.append(ClockResumed())


class _SparseProgress:
    """Writes progress to the log when the stage changes, and otherwise every few seconds."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal = journal
        self._number = number
        self._stage = ""
        self._written = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage == self._stage and now - self._written < PROGRESS_EVERY_SECONDS:
            return
        self._stage, self._written = progress.stage, now
        self._journal.append(ScoreProgressed(self._number, progress.stage, progress.fraction))


def _cancelled() -> Answer:
    return Answer(score=ScoreReport.rejected(ScoreStatus.CANCELLED, "cancelled by the participant"))
