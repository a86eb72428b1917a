"""How a session ends: final snapshot, final score, survey, and the last event, which seals the record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from environments.contract import ScoreStatus
from sessions.host.digest import record_digest
from sessions.host.score_queue import ScoreQueue
from sessions.host.snapshotting import Snapshotter
from sessions.record.events import ParticipantKind, ScoreRequested, SessionClosed, SnapshotReason
from sessions.record.log import Journal
from sessions.record.signing import KEY_NAME, public_key, sign
from sessions.record.state import Phase
from sessions.record.store import Record

SURVEY_MS = 3_600_000
"""How long a finished session waits for its survey before it closes without."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Ending:
    """Begun once, by the deadline, by submission or by a proctor; a new host takes it up where the last left it."""

    def __init__(
        self, record: Record, journal: Journal, snapshotter: Snapshotter, scores: ScoreQueue, spawn: Spawn
    ) -> None:
        self._record = record
        self._journal = journal
        self._snapshotter = snapshotter
        self._scores = scores
        self._spawn = spawn
        self._under_way: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()
        self.before_closing: Callable[[], Awaitable[None]] = _nothing
        """Lets whoever else writes into the record end."""

    def begin(self, reason: SnapshotReason) -> None:
        """Take the final score unless that is under way already."""
        if self._under_way is None:
            self._under_way = self._spawn(self._final_score(reason))

    async def until_finished(self) -> None:
        """Wait until the final score is there."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])

    @property
    def awaits_survey(self) -> bool:
        """Whether nothing else is awaited."""
        finished = self._under_way is not None and self._under_way.done()
        return finished and self._journal.state.phase is Phase.FINISHING

    def survey_answered(self) -> None:
        if self._under_way is not None and self._under_way.done():
            self._spawn(self.close("survey answered"))

    def give_up_on_survey(self) -> None:
        """Close without, once it has been awaited for long enough."""
        journal = self._journal
        if self.awaits_survey and journal.clock.now().milliseconds_since(journal.state.last) > SURVEY_MS:
            self._under_way = self._spawn(self.close("the survey was not answered"))

    def break_off(self, reason: str) -> None:
        """End without a final score: what is queued may finish, what is there stays."""
        self._spawn(self._broken_off(reason))

    async def _broken_off(self, reason: str) -> None:
        await self._snapshotter.take(SnapshotReason.SUBMIT)
        await self._scores.idle()
        await self.close(reason)

    async def _final_score(self, reason: SnapshotReason) -> None:
        """Snapshot, let running scorings end, score the final state unless it is scored already."""
        state = self._journal.state
        final = next((s for s in state.snapshots if s.reason is reason), None)
        if final is None:
            final = await self._snapshotter.take(reason)
        await self._scores.idle()
        if not self._scored(final.tree):
            number = len(self._journal.state.scores)
            self._journal.append(ScoreRequested(number, f"final state at {reason}", final.number))
            self._scores.put(number, final)
            await self._scores.idle()
        if self._journal.state.survey is not None or state.opened.participant_kind is ParticipantKind.AGENT:
            await self.close(str(reason))

    def _scored(self, tree: str | None) -> bool:
        """Whether a finished scoring has judged exactly this tree."""
        state = self._journal.state
        judged = {
            row.snapshot
            for row in state.scores
            if row.status not in (None, ScoreStatus.INFRASTRUCTURE, ScoreStatus.CANCELLED)
        }
        return any(s.number in judged and s.tree == tree for s in state.snapshots)

    async def close(self, reason: str) -> None:
        """Write the last event: final figures and the digest of everything beside the log."""
        await self.before_closing()
        await self._snapshotter.tidy()
        digest = await asyncio.to_thread(record_digest, self._record)
        state = self._journal.state
        if state.phase is Phase.CLOSED:
            return
        counted = state.counted
        body = SessionClosed(
            elapsed_ms=state.elapsed_ms(self._journal.clock.now()),
            counted_score=None if counted is None else counted.number,
            raw=None if counted is None else counted.raw,
            normalised=None if counted is None else counted.normalised,
            digest=digest,
            reason=reason,
        )
        self._journal.append(self._signed(body))
        self.closed.set()

    def _signed(self, body: SessionClosed) -> SessionClosed:
        private = self._record.home / KEY_NAME
        opened = self._journal.state.opened
        if opened.signer is None or not private.exists() or public_key(private) != opened.signer:
            return body
        return replace(body, signature=sign(private, opened.session, self._journal.head, body))


async def _nothing() -> None:
    pass
