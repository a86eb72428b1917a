"""Snapshots for a live session: one at a time, off the event loop, each with its event."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from sessions.record.events import HealthChanged, Light, Part, SkippedFile, SnapshotReason, SnapshotTaken
from sessions.record.log import Journal
from sessions.snapshots import Snapshot, SnapshotStatus, SnapshotStore

SHOWN_SKIPPED = 20


class Snapshotter:
    """Takes the work tree's snapshots and writes `snapshot_taken` for every one, failed ones too."""

    def __init__(self, journal: Journal, store: SnapshotStore, work_tree: Path) -> None:
        self._journal = journal
        self.store = store
        self.work_tree = work_tree
        self._lock = asyncio.Lock()
        self._running: asyncio.Future[Snapshot] | None = None

    async def take(self, reason: SnapshotReason, *, score: int | None = None) -> SnapshotTaken:
        """Take a snapshot now; a failure is an event with `commit` None, not an exception."""
        async with self._lock:
            state = self._journal.state
            number = self._next_number()
            keep = {row.snapshot for row in (state.best, state.last_valid, state.starting) if row is not None}
            try:
                self._running = asyncio.ensure_future(
                    asyncio.to_thread(
                        self.store.take,
                        self.work_tree,
                        number,
                        f"{reason} {number}",
                        protected_numbers=frozenset(n for n in keep if n is not None),
                    )
                )
                taken = await asyncio.shield(self._running)
                body = _event(taken, reason, score)
            except Exception as error:  # noqa: BLE001  (whatever broke, the session goes on and the log says so)
                body = _failed(number, reason, score, error)
            self._journal.append(body)
            self._light(body)
            return body

    def _next_number(self) -> int:
        """One after everything the log and the store know: a host may have died between the two."""
        logged = (snapshot.number for snapshot in self._journal.state.snapshots)
        return max((*logged, *self.store.numbers()), default=-1) + 1

    async def settled(self) -> None:
        """Wait until no snapshot is being taken; a thread cannot be stopped half-way."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def tidy(self) -> None:
        """Pack what was stored, off the clock; a store that cannot be packed is as good."""
        async with self._lock:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(self.store.repack)

    def _light(self, body: SnapshotTaken) -> None:
        known = self._journal.state.health.get(Part.SNAPSHOTS)
        light, reason = Light.GREEN, ""
        if body.commit is None:
            light, reason = Light.RED, body.problem or "the last snapshot failed"
        elif body.status == SnapshotStatus.PARTIAL.value:
            light, reason = (
                Light.AMBER,
                f"{body.skipped_count} paths could not be stored, see snapshot {body.number}",
            )
        if known is None or (known.light, known.reason) != (light, reason):
            self._journal.append(HealthChanged(Part.SNAPSHOTS, light, reason))


def _event(taken: Snapshot, reason: SnapshotReason, score: int | None) -> SnapshotTaken:
    skipped = tuple(SkippedFile(skip.path, skip.reason) for skip in taken.skipped[:SHOWN_SKIPPED])
    return SnapshotTaken(
        number=taken.number,
        reason=reason,
        status=taken.status.value,
        commit=taken.commit or None,
        tree=taken.tree or None,
        files=taken.files,
        bytes=taken.bytes,
        artifacts=taken.artifacts,
        seconds=round(taken.seconds, 4),
        skipped_count=taken.skipped_count,
        skipped=skipped,
        score=score,
        problem=taken.problem,
    )


def _failed(number: int, reason: SnapshotReason, score: int | None, error: Exception) -> SnapshotTaken:
    return SnapshotTaken(
        number=number,
        reason=reason,
        status="failed",
        commit=None,
        tree=None,
        files=0,
        bytes=0,
        artifacts=0,
        seconds=0.0,
        score=score,
        problem=f"{type(error).__name__}: {error}",
    )
