"""What a session is at one moment: its clock, scores, pauses and all the rest, as `fold` makes it of the events."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from environments.contract import Anchors, Counting, Direction, ScoreStatus
from sessions.record.clock import Instant
from sessions.record.events import (
    CheckRun,
    CorrectionMade,
    Interrupted,
    Light,
    Part,
    PauseReason,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TimeCredited,
)


class Phase(StrEnum):
    """Where a session is in its life."""

    OPENED = "opened"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHING = "finishing"
    CLOSED = "closed"


class Frozen(msgspec.Struct, frozen=True):
    """Base of the state's values."""


class SessionClock(Frozen, frozen=True):
    """Time spent, as far as the events tell; `elapsed` asks it about any later moment."""

    budget_ms: int
    banked_ms: int = 0
    """Active time up to `since`."""
    since: Instant | None = None
    """When the clock last began to run; None while it stands."""
    credited_ms: int = 0

    @property
    def running(self) -> bool:
        return self.since is not None

    def active_ms(self, now: Instant) -> int:
        """Return milliseconds the clock has run, before credits and the budget."""
        if self.since is None or self.since.boot_id != now.boot_id:
            return self.banked_ms
        return self.banked_ms + now.milliseconds_since(self.since)

    def elapsed_ms(self, now: Instant) -> int:
        """Return session time used at `now`: never negative, never above the budget."""
        return min(self.budget_ms, max(0, self.active_ms(now) - self.credited_ms))

    def remaining_ms(self, now: Instant) -> int:
        return self.budget_ms - self.elapsed_ms(now)

    def stopped(self, now: Instant) -> SessionClock:
        return replace(self, banked_ms=self.active_ms(now), since=None)

    def started(self, now: Instant) -> SessionClock:
        return replace(self, since=now)


class Pause(Frozen, frozen=True):
    """One stand of the clock."""

    reason: PauseReason
    note: str
    by: str
    elapsed_ms: int
    began: Instant
    ended: Instant | None = None

    @property
    def is_proctors(self) -> bool:
        """Whether a proctor stopped the clock, so that only one lets it run again."""
        return self.by.startswith("proctor")

    def milliseconds(self, now: Instant) -> int:
        return (self.ended or now).milliseconds_since(self.began)


class ScoreRow(Frozen, frozen=True):
    """One scoring: asked for, perhaps running, perhaps done. Number 0 is the starting score."""

    number: int
    at: str
    elapsed_ms: int
    """Session time of the call."""
    note: str = ""
    snapshot: int | None = None
    commit: str | None = None
    status: ScoreStatus | None = None
    """None until it is recorded."""
    raw: float | None = None
    normalised: float | None = None
    change: float | None = None
    """Raw minus the raw of the valid score before; None for the first."""
    message: str = ""
    seconds: float | None = None
    stage: str = ""
    fraction: float | None = None
    details_sha256: str | None = None

    @property
    def pending(self) -> bool:
        return self.status is None


class Note(Frozen, frozen=True):
    at: str
    elapsed_ms: int
    by: str
    text: str


class ProctorMessage(Frozen, frozen=True):
    number: int
    at: str
    by: str
    text: str
    acknowledged: bool = False


class Health(Frozen, frozen=True):
    light: Light
    reason: str
    at: str


class Shell(Frozen, frozen=True):
    """A shell seen on the session; `recording` is None where nobody records it."""

    recording: int | None
    command: str
    pid: int
    opened_elapsed_ms: int
    closed: bool = False


class Usage(Frozen, frozen=True):
    """Sum of what an agent reported, and of the calls through the gateway."""

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


class Account(Frozen, frozen=True):
    """What one account has paid for calls through the gateway."""

    name: str
    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0


class SessionState(Frozen, frozen=True):
    """Everything a reader needs to know about a session at one moment."""

    opened: SessionOpened
    opened_at: str
    phase: Phase
    clock: SessionClock
    last: Instant
    """When the latest event happened."""
    last_seq: int
    consented: bool = False
    started_at: str | None = None
    brief_shown: bool = False
    scores: tuple[ScoreRow, ...] = ()
    best: ScoreRow | None = None
    last_valid: ScoreRow | None = None
    pauses: tuple[Pause, ...] = ()
    interruptions: tuple[tuple[str, Interrupted], ...] = ()
    credits: tuple[tuple[str, str, TimeCredited], ...] = ()
    corrections: tuple[tuple[str, CorrectionMade], ...] = ()
    snapshots: tuple[SnapshotTaken, ...] = ()
    checks: int = 0
    last_check: CheckRun | None = None
    notes: tuple[Note, ...] = ()
    messages: tuple[ProctorMessage, ...] = ()
    warnings: tuple[int, ...] = ()
    health: dict[Part, Health] = {}
    shells: tuple[Shell, ...] = ()
    recording_gaps: int = 0
    commands: int = 0
    usage: Usage = Usage()
    accounts: dict[str, Account] = {}
    """The gateway's accounts in the order of their first calls."""
    survey: dict[str, str] | None = None
    submitted_at: str | None = None
    deadline_at: str | None = None
    closed: SessionClosed | None = None

    @property
    def direction(self) -> Direction:
        return self.opened.environment.direction

    @property
    def anchors(self) -> Anchors | None:
        return self.opened.anchors

    @property
    def starting(self) -> ScoreRow | None:
        """The starting score, once it is recorded."""
        return self.scores[0] if self.scores and not self.scores[0].pending else None

    @property
    def counted(self) -> ScoreRow | None:
        """The scoring that counts now: the best valid one, or the last where the environment says so."""
        return self.last_valid if self.opened.environment.counting is Counting.LAST else self.best

    @property
    def pending(self) -> tuple[ScoreRow, ...]:
        return tuple(row for row in self.scores if row.pending)

    @property
    def pause(self) -> Pause | None:
        """The open pause, if the clock stands in one."""
        return self.pauses[-1] if self.pauses and self.pauses[-1].ended is None else None

    @property
    def last_snapshot(self) -> SnapshotTaken | None:
        return next((s for s in reversed(self.snapshots) if s.commit is not None), None)

    @property
    def scores_hidden(self) -> bool:
        return self.opened.environment.scores_hidden or self.opened.policy.variant.value == "hidden_score"

    def elapsed_ms(self, now: Instant | None = None) -> int:
        return self.clock.elapsed_ms(now or self.last)

    def remaining_ms(self, now: Instant | None = None) -> int:
        return self.clock.remaining_ms(now or self.last)

    def paused_ms(self, now: Instant | None = None) -> int:
        return sum(pause.milliseconds(now or self.last) for pause in self.pauses)
