"""The fold of a session's events into its state: pure, and the only place where time and scores are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from sessions.record.clock import Instant
from sessions.record.events import (
    ActivitySeen,
    Body,
    BriefShown,
    CheckRun,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    CommandRun,
    ConsentGiven,
    CorrectionMade,
    DeadlineReached,
    Event,
    HealthChanged,
    Heartbeat,
    Interrupted,
    MessageAcknowledged,
    MessageSent,
    NoteWritten,
    RecordingGap,
    ScoreProgressed,
    ScoreRecorded,
    ScoreRequested,
    SessionClosed,
    SessionOpened,
    ShellClosed,
    ShellOpened,
    SnapshotTaken,
    StartingScoreRecorded,
    Submitted,
    SurveyAnswered,
    TimeCredited,
    UsageReported,
    WarningGiven,
)
from sessions.record.state import (
    Account,
    Health,
    Note,
    Pause,
    Phase,
    ProctorMessage,
    ScoreRow,
    SessionClock,
    SessionState,
    Shell,
    Usage,
)


class EventImpossible(ValueError):
    """An event cannot follow what came before it."""


def instant_of(event: Event) -> Instant:
    return Instant(event.boottime, event.boot_id, event.at)


def fold(events: Iterable[Event]) -> SessionState:
    """Return the state after `events`.

    Raises:
        EventImpossible: an event cannot follow the ones before it, or there is none.
    """
    state: SessionState | None = None
    for event in events:
        state = apply(state, event)
    if state is None:
        raise EventImpossible("a record without events has no state")
    return state


def apply(state: SessionState | None, event: Event) -> SessionState:
    """Return the state after one more event; pure."""
    now = instant_of(event)
    if state is None:
        if not isinstance(event.body, SessionOpened):
            raise EventImpossible(f"a record begins with session_opened, not {event.kind}")
        return SessionState(
            opened=event.body,
            opened_at=event.at,
            phase=Phase.OPENED,
            clock=SessionClock(budget_ms=event.body.policy.budget_ms),
            last=now,
            last_seq=event.seq,
        )
    if state.phase is Phase.CLOSED:
        raise EventImpossible(f"{event.kind} (seq {event.seq}) stands after the session was closed")
    step = _STEPS.get(type(event.body))
    if step is None:
        raise EventImpossible(f"{event.kind} does not belong in a session's log")
    changed = step(state, event, now, event.body)
    return replace(changed, last=now, last_seq=event.seq)


Step = Callable[[SessionState, Event, Instant, Any], SessionState]


def _require(condition: bool, event: Event, state: SessionState) -> None:
    if not condition:
        raise EventImpossible(
            f"{event.kind} (seq {event.seq}) cannot happen while the session is {state.phase}"
        )


def _nothing(state: SessionState, event: Event, now: Instant, body: Body) -> SessionState:
    return state


def _opened_twice(state: SessionState, event: Event, now: Instant, body: SessionOpened) -> SessionState:
    raise EventImpossible(f"session_opened again at seq {event.seq}")


def _consent_given(state: SessionState, event: Event, now: Instant, body: ConsentGiven) -> SessionState:
    return replace(state, consented=True)


def _clock_started(state: SessionState, event: Event, now: Instant, body: ClockStarted) -> SessionState:
    _require(state.phase is Phase.READY, event, state)
    return replace(state, phase=Phase.RUNNING, started_at=event.at, clock=state.clock.started(now))


def _brief_shown(state: SessionState, event: Event, now: Instant, body: BriefShown) -> SessionState:
    return replace(state, brief_shown=True)


def _clock_paused(state: SessionState, event: Event, now: Instant, body: ClockPaused) -> SessionState:
    _require(state.phase is Phase.RUNNING, event, state)
    pause = Pause(body.reason, body.note, event.by, state.elapsed_ms(now), now)
    return replace(state, phase=Phase.PAUSED, clock=state.clock.stopped(now), pauses=(*state.pauses, pause))


def _clock_resumed(state: SessionState, event: Event, now: Instant, body: ClockResumed) -> SessionState:
    _require(state.phase is Phase.PAUSED, event, state)
    return replace(_closing_pause(state, now), phase=Phase.RUNNING, clock=state.clock.started(now))


def _closing_pause(state: SessionState, now: Instant) -> SessionState:
    if state.pause is None:
        return state
    return replace(state, pauses=(*state.pauses[:-1], replace(state.pauses[-1], ended=now)))


def _interrupted(state: SessionState, event: Event, now: Instant, body: Interrupted) -> SessionState:
    """Close the books at the last event, then count the gap or not."""
    clock = state.clock
    if clock.running:
        gap = body.lost_ms if body.counted else 0
        clock = replace(clock, banked_ms=clock.active_ms(state.last) + gap, since=now)
    return replace(state, clock=clock, interruptions=(*state.interruptions, (event.at, body)))


def _time_credited(state: SessionState, event: Event, now: Instant, body: TimeCredited) -> SessionState:
    clock = replace(state.clock, credited_ms=state.clock.credited_ms + body.credit_ms)
    return replace(state, clock=clock, credits=(*state.credits, (event.at, event.by, body)))


def _correction_made(state: SessionState, event: Event, now: Instant, body: CorrectionMade) -> SessionState:
    _require(0 <= body.corrects < event.seq, event, state)
    return replace(state, corrections=(*state.corrections, (event.by, body)))


def _snapshot_taken(state: SessionState, event: Event, now: Instant, body: SnapshotTaken) -> SessionState:
    state = replace(state, snapshots=(*state.snapshots, body))
    if body.score is None or not any(row.number == body.score for row in state.scores):
        return state
    return _with_row(state, body.score, event, snapshot=body.number, commit=body.commit)


def _score_requested(state: SessionState, event: Event, now: Instant, body: ScoreRequested) -> SessionState:
    _require(state.phase is not Phase.CLOSED, event, state)
    if body.number != len(state.scores):
        raise EventImpossible(
            f"score {body.number} requested (seq {event.seq}) where {len(state.scores)} is next"
        )
    snapshot = next((s for s in state.snapshots if s.number == body.snapshot), None)
    row = ScoreRow(body.number, event.at, state.elapsed_ms(now), body.note)
    if snapshot is not None:
        row = replace(row, snapshot=snapshot.number, commit=snapshot.commit)
    return replace(state, scores=(*state.scores, row))


def _score_progressed(state: SessionState, event: Event, now: Instant, body: ScoreProgressed) -> SessionState:
    return _with_row(state, body.number, event, stage=body.stage, fraction=body.fraction)


def _score_recorded(state: SessionState, event: Event, now: Instant, body: ScoreRecorded) -> SessionState:
    return _finish_score(state, event, body.number, body)


def _starting_score_recorded(
    state: SessionState, event: Event, now: Instant, body: StartingScoreRecorded
) -> SessionState:
    state = _finish_score(state, event, 0, body)
    return replace(state, phase=Phase.READY) if state.phase is Phase.OPENED else state


def _finish_score(
    state: SessionState, event: Event, number: int, body: ScoreRecorded | StartingScoreRecorded
) -> SessionState:
    row = _row(state, number, event)
    if not row.pending:
        raise EventImpossible(f"score {number} recorded twice (seq {event.seq})")
    previous = state.last_valid
    state = _with_row(
        state,
        number,
        event,
        snapshot=body.snapshot,
        commit=body.commit,
        status=body.status,
        raw=body.raw,
        normalised=None if body.raw is None or state.anchors is None else state.anchors.normalise(body.raw),
        change=None
        if body.raw is None or previous is None or previous.raw is None
        else body.raw - previous.raw,
        message=body.message,
        seconds=body.seconds,
        stage="",
        fraction=None,
        details_sha256=body.details_sha256,
    )
    if body.raw is None:
        return state
    done = state.scores[number]
    beats = state.best is None or state.best.raw is None or state.direction.better(body.raw, state.best.raw)
    later = previous is None or done.number > previous.number
    return replace(state, best=done if beats else state.best, last_valid=done if later else previous)


def _row(state: SessionState, number: int, event: Event) -> ScoreRow:
    if not 0 <= number < len(state.scores):
        raise EventImpossible(
            f"{event.kind} (seq {event.seq}) names score {number}, which was never requested"
        )
    return state.scores[number]


def _with_row(state: SessionState, number: int, event: Event, **changes: Any) -> SessionState:
    row = replace(_row(state, number, event), **changes)
    return replace(state, scores=(*state.scores[:number], row, *state.scores[number + 1 :]))


def _check_run(state: SessionState, event: Event, now: Instant, body: CheckRun) -> SessionState:
    return replace(state, checks=state.checks + 1, last_check=body)


def _note_written(state: SessionState, event: Event, now: Instant, body: NoteWritten) -> SessionState:
    note = Note(event.at, state.elapsed_ms(now), event.by, body.text)
    return replace(state, notes=(*state.notes, note))


def _shell_opened(state: SessionState, event: Event, now: Instant, body: ShellOpened) -> SessionState:
    shell = Shell(body.recording, body.command, body.pid, state.elapsed_ms(now))
    return replace(state, shells=(*state.shells, shell))


def _shell_closed(state: SessionState, event: Event, now: Instant, body: ShellClosed) -> SessionState:
    shells = tuple(
        replace(shell, closed=True)
        if shell.pid == body.pid and shell.recording == body.recording and not shell.closed
        else shell
        for shell in state.shells
    )
    return replace(state, shells=shells)


def _recording_gap(state: SessionState, event: Event, now: Instant, body: RecordingGap) -> SessionState:
    return replace(state, recording_gaps=state.recording_gaps + 1)


def _command_run(state: SessionState, event: Event, now: Instant, body: CommandRun) -> SessionState:
    return replace(state, commands=state.commands + 1)


def _usage_reported(state: SessionState, event: Event, now: Instant, body: UsageReported) -> SessionState:
    dollars = state.usage.dollars
    if body.dollars is not None:
        dollars = (dollars or 0.0) + body.dollars
    usage = Usage(
        state.usage.input_tokens + body.input_tokens, state.usage.output_tokens + body.output_tokens, dollars
    )
    return replace(state, usage=usage, accounts=_paid(state.accounts, body))


def _paid(accounts: dict[str, Account], body: UsageReported) -> dict[str, Account]:
    if body.account is None:
        return accounts
    before = accounts.get(body.account, Account(body.account))
    after = Account(
        before.name,
        before.calls + 1,
        before.tokens + body.input_tokens + body.output_tokens,
        before.dollars + (body.dollars or 0.0),
    )
    return {**accounts, body.account: after}


def _health_changed(state: SessionState, event: Event, now: Instant, body: HealthChanged) -> SessionState:
    return replace(state, health={**state.health, body.part: Health(body.light, body.reason, event.at)})


def _message_sent(state: SessionState, event: Event, now: Instant, body: MessageSent) -> SessionState:
    message = ProctorMessage(body.number, event.at, event.by, body.text)
    return replace(state, messages=(*state.messages, message))


def _message_acknowledged(
    state: SessionState, event: Event, now: Instant, body: MessageAcknowledged
) -> SessionState:
    messages = tuple(replace(m, acknowledged=True) if m.number == body.number else m for m in state.messages)
    return replace(state, messages=messages)


def _warning_given(state: SessionState, event: Event, now: Instant, body: WarningGiven) -> SessionState:
    return replace(state, warnings=(*state.warnings, body.minutes_left))


def _deadline_reached(state: SessionState, event: Event, now: Instant, body: DeadlineReached) -> SessionState:
    _require(state.phase in (Phase.RUNNING, Phase.PAUSED), event, state)
    return replace(_freeze(state, now), deadline_at=event.at)


def _submitted(state: SessionState, event: Event, now: Instant, body: Submitted) -> SessionState:
    _require(state.phase in (Phase.RUNNING, Phase.PAUSED), event, state)
    return replace(_freeze(state, now), submitted_at=event.at)


def _freeze(state: SessionState, now: Instant) -> SessionState:
    return replace(_closing_pause(state, now), phase=Phase.FINISHING, clock=state.clock.stopped(now))


def _survey_answered(state: SessionState, event: Event, now: Instant, body: SurveyAnswered) -> SessionState:
    return replace(state, survey=body.answers)


def _session_closed(state: SessionState, event: Event, now: Instant, body: SessionClosed) -> SessionState:
    _require(state.phase is not Phase.CLOSED, event, state)
    return replace(_freeze(state, now), phase=Phase.CLOSED, closed=body)


_STEPS: dict[type[Body], Step] = {
    SessionOpened: _opened_twice,
    ConsentGiven: _consent_given,
    StartingScoreRecorded: _starting_score_recorded,
    ClockStarted: _clock_started,
    BriefShown: _brief_shown,
    ClockPaused: _clock_paused,
    ClockResumed: _clock_resumed,
    Heartbeat: _nothing,
    Interrupted: _interrupted,
    TimeCredited: _time_credited,
    CorrectionMade: _correction_made,
    SnapshotTaken: _snapshot_taken,
    ScoreRequested: _score_requested,
    ScoreProgressed: _score_progressed,
    ScoreRecorded: _score_recorded,
    CheckRun: _check_run,
    NoteWritten: _note_written,
    ShellOpened: _shell_opened,
    ShellClosed: _shell_closed,
    RecordingGap: _recording_gap,
    CommandRun: _command_run,
    UsageReported: _usage_reported,
    ActivitySeen: _nothing,
    HealthChanged: _health_changed,
    MessageSent: _message_sent,
    MessageAcknowledged: _message_acknowledged,
    WarningGiven: _warning_given,
    DeadlineReached: _deadline_reached,
    Submitted: _submitted,
    SurveyAnswered: _survey_answered,
    SessionClosed: _session_closed,
}
