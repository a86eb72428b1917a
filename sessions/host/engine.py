"""What may happen in a live session and what follows from it; knows nothing of sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from sessions.clients.protocol import Fault, Refusal
from sessions.host.ending import Ending
from sessions.host.score_queue import ScoreQueue
from sessions.host.snapshotting import Snapshotter
from sessions.record.events import (
    Breaks,
    BriefShown,
    CheckRun,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    ConsentGiven,
    DeadlineReached,
    HealthChanged,
    Heartbeat,
    Interrupted,
    InterruptionCause,
    Interruptions,
    Light,
    MessageAcknowledged,
    NoteWritten,
    Part,
    ParticipantKind,
    PauseReason,
    ScoreRequested,
    ScoringTime,
    SnapshotReason,
    Submitted,
    SurveyAnswered,
    UsageReported,
    WarningGiven,
)
from sessions.record.log import Journal
from sessions.record.state import Phase, SessionState
from sessions.record.store import Record
from sessions.snapshots.tally import listable

HEARTBEAT_MS = 10_000
LATE_MS = 30_000
"""A silence longer than this is an interruption."""
LARGEST_USAGE = 10**12
"""Tokens or dollars of one report."""


class Engine:
    """The rules of a live session: who may do what in which phase, and the events that follow."""

    def __init__(
        self, record: Record, journal: Journal, snapshotter: Snapshotter, scores: ScoreQueue
    ) -> None:
        self.record = record
        self.journal = journal
        self.snapshotter = snapshotter
        self.scores = scores
        self._tasks: set[asyncio.Task[Any]] = set()
        self.ending = Ending(record, journal, snapshotter, scores, self.spawn)

    @property
    def state(self) -> SessionState:
        return self.journal.state

    # --- life ---------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Carry on from the log: note the interruption, take up what was left undone."""
        state = self.state
        if state.phase is Phase.CLOSED:
            self.ending.closed.set()
            return
        if state.last_seq > 0 or self.journal.torn:
            self._note_interruption()
        self.scores.recover()
        if state.phase is Phase.OPENED and not state.scores:
            self.spawn(self._starting_score())
        if state.phase is Phase.FINISHING:
            self.ending.begin(SnapshotReason.DEADLINE if state.deadline_at else SnapshotReason.SUBMIT)

    def _note_interruption(self, cause: InterruptionCause | None = None) -> None:
        now, last = self.journal.clock.now(), self.state.last
        if cause is None:
            same_boot = now.boot_id == last.boot_id
            cause = InterruptionCause.HOST_STOPPED if same_boot else InterruptionCause.REBOOT
        policy = self.state.opened.policy.interruptions
        counted = policy is Interruptions.COUNTED or (
            policy is Interruptions.AUTO and cause is not InterruptionCause.REBOOT
        )
        self.journal.append(
            Interrupted(cause, now.milliseconds_since(last), counted, torn_bytes=len(self.journal.torn))
        )

    async def _starting_score(self) -> None:
        self.journal.append(ScoreRequested(0, "starting solution"))
        self.scores.put(0, await self.snapshotter.take(SnapshotReason.START, score=0))

    def tick(self) -> None:
        """Look at the clock: heartbeat, warnings, deadline. Called about twice a second."""
        state = self.state
        now = self.journal.clock.now()
        self.ending.give_up_on_survey()
        if state.phase not in (Phase.RUNNING, Phase.PAUSED):
            return
        silence = now.milliseconds_since(state.last)
        if now.boot_id != state.last.boot_id or silence > LATE_MS:
            self._note_interruption(InterruptionCause.SUSPENDED)
        elif silence >= HEARTBEAT_MS:
            self.journal.append(Heartbeat())
        if self.state.phase is Phase.RUNNING:
            self._watch_the_deadline()

    def _watch_the_deadline(self) -> None:
        state = self.state
        remaining = state.remaining_ms(self.journal.clock.now())
        if remaining <= 0:
            self.journal.append(DeadlineReached())
            self.ending.begin(SnapshotReason.DEADLINE)
            return
        due = [
            minutes
            for minutes in state.opened.policy.warnings_minutes
            if remaining <= minutes * 60_000 < state.clock.budget_ms and minutes not in state.warnings
        ]
        if due:
            self.journal.append(WarningGiven(min(due)))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` to its end, whoever asked for it and however soon they leave."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, Refusal):
            self.alarm(Part.HOST, f"{type(error).__name__}: {error}")

    def alarm(self, part: Part, reason: str, light: Light = Light.RED) -> None:
        """Turn a light, once for each change."""
        if self.state.phase is Phase.CLOSED:
            return
        known = self.state.health.get(part)
        if known is None and light is Light.GREEN:
            return
        if known is None or (known.light, known.reason) != (light, reason):
            self.journal.append(HealthChanged(part, light, reason))

    async def stop(self) -> None:
        """Let go of everything; the log is whole and another host may carry on."""
        await self.scores.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.snapshotter.settled()

    # --- what participants do -----------------------------------------------------------------------------

    def consent(self, rules_sha256: str, by: str) -> None:
        if not self.state.consented:
            self.journal.append(ConsentGiven(rules_sha256), by)

    def start_clock(self, by: str) -> None:
        self._require_phase("start the clock", Phase.READY)
        starting = self.state.starting
        if starting is None or starting.raw is None:
            why = "" if starting is None else f": {starting.message}"
            raise Refusal(f"cannot start the clock: the starting solution has no valid score{why}")
        if not self.state.consented:
            raise Refusal("cannot start the clock: the rules have not been agreed to yet")
        self.journal.append(ClockStarted(), by)

    def brief(self, by: str) -> str:
        """Return the brief; it is shown only once the clock has started.

        Raises:
            Refusal: the clock has not started.
        """
        if self.state.phase in (Phase.OPENED, Phase.READY):
            raise Refusal("the brief is shown once the clock runs: `rebench-workbench resume` starts it")
        if not self.state.brief_shown and self.state.phase is not Phase.CLOSED:
            self.journal.append(BriefShown(), by)
        return self.record.brief.read_text()

    async def score(self, note: str, by: str) -> int:
        """Snapshot the work tree and queue it for scoring; returns the scoring's number."""
        self._require_phase("score", Phase.RUNNING)
        number = len(self.state.scores)
        self.journal.append(ScoreRequested(number, note), by)
        if self.state.opened.policy.scoring_time is ScoringTime.EXCLUDED:
            self.journal.append(ClockPaused(PauseReason.SCORING))
        self.scores.put(number, await self.snapshotter.take(SnapshotReason.SCORE, score=number))
        return number

    async def recorded(self, number: int) -> None:
        """Wait until scoring `number` has its result."""
        await self._until(lambda: not self.state.scores[number].pending)

    async def _until(self, condition: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        stop = self.journal.subscribe(lambda _event, _line: changed.set())
        try:
            while not condition():
                changed.clear()
                await changed.wait()
        finally:
            stop()

    async def recorded_first(self) -> None:
        """Wait until the starting score is there."""
        await self._until(lambda: self.state.phase is not Phase.OPENED)

    async def diff(self, old: int, new: int) -> dict[str, Any]:
        """Return the difference between two snapshots, as plain values."""
        commits = [self._commit(number) for number in (old, new)]
        found: dict[str, Any] = msgspec.to_builtins(
            await asyncio.to_thread(self.snapshotter.store.diff, *commits)
        )
        return found

    def _commit(self, number: int) -> str:
        taken = next((s for s in self.state.snapshots if s.number == number), None)
        if taken is None or taken.commit is None:
            raise Refusal(f"there is no snapshot {number}", Fault.BAD_PARAMETERS)
        return taken.commit

    async def changed(self) -> dict[str, Any]:
        """Return the files that differ from the last snapshot, and how many more there are than an answer lists."""
        last = self.state.last_snapshot
        if last is None:
            return {"files": [], "unlisted": 0}
        paths = await asyncio.to_thread(
            self.snapshotter.store.changed_since, last.number, self.snapshotter.work_tree
        )
        listed = listable(path.path for path in paths)
        return {"files": msgspec.to_builtins(paths[:listed]), "unlisted": len(paths) - listed}

    def cancel_score(self, number: int) -> None:
        """Cancel a scoring that is queued or running.

        Raises:
            Refusal: there is no such scoring, or it is done.
        """
        if number == 0 or not any(row.number == number for row in self.state.pending):
            raise Refusal(f"score {number} is not running or queued")
        self.scores.cancel(number)

    async def check(self, by: str) -> CheckRun:
        """Say whether the work tree would be accepted as it stands."""
        self._require_phase("check", Phase.RUNNING, Phase.PAUSED)
        snapshot = await self.snapshotter.take(SnapshotReason.CHECK)
        answer, seconds = await self.scores.check(snapshot)
        report = answer.check
        body = CheckRun(
            snapshot=snapshot.number,
            accepted=report is not None and report.accepted,
            problems=report.problems if report else (),
            seconds=seconds,
            fault=answer.fault,
        )
        self.journal.append(body, by)
        return body

    def note(self, text: str, by: str) -> None:
        if self.state.phase is Phase.CLOSED:
            raise Refusal("cannot add a note: the session is closed")
        if not text.strip():
            raise Refusal("cannot add a note: it is empty", Fault.BAD_PARAMETERS)
        self.journal.append(NoteWritten(text), by)

    async def pause(self, reason: PauseReason, note: str, by: str, *, proctor: bool = False) -> None:
        """Stop the clock."""
        state = self.state
        if state.phase is Phase.PAUSED and state.pause is not None:
            raise Refusal(f"cannot pause: the clock already stands ({state.pause.reason})")
        self._require_phase("pause", Phase.RUNNING)
        if not proctor:
            self._require_break_allowed(reason)
        self.journal.append(ClockPaused(reason, note), by)
        await self.snapshotter.take(SnapshotReason.PAUSE)

    def _require_break_allowed(self, reason: PauseReason) -> None:
        if reason is PauseReason.API and self.state.opened.participant_kind is ParticipantKind.AGENT:
            return
        if reason is not PauseReason.BREAK:
            raise Refusal(f"cannot pause for {reason}: a participant may pause for `break` only")
        breaks = self.state.opened.policy.breaks
        if breaks is not Breaks.ALLOWED:
            why = (
                "only a proctor may stop the clock"
                if breaks is Breaks.PROCTOR
                else "this session has no breaks"
            )
            raise Refusal(f"cannot pause: {why}")

    def resume(self, by: str, *, proctor: bool = False) -> None:
        """Let the clock run again."""
        pause = self.state.pause
        if pause is None:
            raise Refusal(f"cannot resume: the session is {self.state.phase}, not paused")
        if pause.reason is PauseReason.SCORING:
            raise Refusal("cannot resume: the clock stands while the score is computed and goes on by itself")
        if not proctor and pause.is_proctors:
            raise Refusal(f"cannot resume: {pause.by} stopped the clock and lets it run again")
        self.journal.append(ClockResumed(), by)

    def submit(self, by: str) -> None:
        """End the work: freeze, final snapshot, final score."""
        self._require_phase("submit", Phase.RUNNING, Phase.PAUSED)
        self.journal.append(Submitted(), by)
        self.ending.begin(SnapshotReason.SUBMIT)

    def survey(self, answers: dict[str, str], by: str) -> None:
        if self.state.phase is not Phase.FINISHING:
            raise Refusal(f"the survey comes after submission; the session is {self.state.phase}")
        self.journal.append(SurveyAnswered(answers), by)
        self.ending.survey_answered()

    def acknowledge(self, number: int, by: str) -> None:
        if not any(message.number == number for message in self.state.messages):
            raise Refusal(f"there is no message {number}")
        self.journal.append(MessageAcknowledged(number), by)

    def usage(self, report: UsageReported, by: str) -> None:
        figures = (report.input_tokens, report.output_tokens, report.dollars or 0)
        if not all(0 <= figure <= LARGEST_USAGE for figure in figures):
            raise Refusal(
                f"usage: every figure must lie between 0 and {LARGEST_USAGE:,}", Fault.BAD_PARAMETERS
            )
        self.journal.append(report, by)

    def _require_phase(self, what: str, *phases: Phase) -> None:
        phase = self.state.phase
        if phase in phases:
            return
        raise Refusal(f"cannot {what}: {_WHY_NOT[phase]}")


_WHY_NOT = {
    Phase.OPENED: "the starting score is still being taken",
    Phase.READY: "the clock has not started yet",
    Phase.RUNNING: "the clock is running",
    Phase.PAUSED: "the clock is paused; resume first",
    Phase.FINISHING: "the work is over; the final score is being taken",
    Phase.CLOSED: "the session is closed",
}
