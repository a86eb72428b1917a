"""One line about any event, for lists and for a terminal without a screen; outside text is the caller's to make literal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessions.record import events as e
from workbench.ink.figures import duration, figure, size


def describe(event: e.Event) -> str:
    """Return what happened, in a few words."""
    return _WORDS[type(event.body)](event.body)


def _opened(b: e.SessionOpened) -> str:
    return f"opened: {b.environment.slug} {b.environment.version}, {b.profile}, {b.participant}, isolation {b.isolation.level}"


def _interrupted(b: e.Interrupted) -> str:
    whose = "counted" if b.counted else "given back"
    torn = f", {b.torn_bytes} torn bytes dropped" if b.torn_bytes else ""
    return f"interrupted ({b.cause}) for {duration(b.lost_ms)}, {whose}{torn}"


def _credited(b: e.TimeCredited) -> str:
    return f"{duration(abs(b.credit_ms))} {'given' if b.credit_ms > 0 else 'taken'}: {b.why}"


def _snapshot(b: e.SnapshotTaken) -> str:
    if b.commit is None:
        return f"snapshot {b.number} FAILED ({b.reason}): {b.problem}"
    partial = f", {b.status}: {b.skipped_count} paths not stored" if b.status != "complete" else ""
    return f"snapshot {b.number} {b.commit[:7]} ({b.reason}): {b.files} file{'s' * (b.files != 1)}, {size(b.bytes)}{partial}"


def _recorded(b: e.ScoreRecorded | e.StartingScoreRecorded) -> str:
    name = f"score #{b.number}" if isinstance(b, e.ScoreRecorded) else "starting score"
    return f"{name}: {b.status} {figure(b.raw)} after {b.seconds:.1f} s. {b.message}"


def _check(b: e.CheckRun) -> str:
    if b.fault:
        return f"check broke: {b.fault}"
    if b.accepted:
        return "check: accepted"
    more = f" (and {len(b.problems) - 1} more)" if len(b.problems) > 1 else ""
    return f"check: {b.problems[0].what}{more}"


def _activity(b: e.ActivitySeen) -> str:
    counts = f"{b.created} made, {b.modified} changed, {b.deleted} deleted"
    degraded = f" (watching degraded: {b.degraded})" if b.degraded else ""
    return f"files: {counts}{degraded} {', '.join(b.paths[:4])}"


def _command(b: e.CommandRun) -> str:
    how = "timed out" if b.timed_out else f"exit code {b.exit_code}"
    return f"$ {b.command} → {how}, {b.seconds:.1f} s, {size(b.output_bytes)}"


def _closed(b: e.SessionClosed) -> str:
    counted = "no valid score" if b.counted_score is None else f"#{b.counted_score} counts: {figure(b.raw)}"
    return f"closed ({b.reason}) at {duration(b.elapsed_ms)}, {counted}"


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f" {fraction:.0%}"


_WORDS: dict[type[e.Body], Callable[[Any], str]] = {
    e.SessionOpened: _opened,
    e.ConsentGiven: lambda _: "agreed to the rules",
    e.StartingScoreRecorded: _recorded,
    e.ClockStarted: lambda _: "clock started",
    e.BriefShown: lambda _: "brief shown",
    e.ClockPaused: lambda b: f"paused ({b.reason})" + (f": {b.note}" if b.note else ""),
    e.ClockResumed: lambda _: "resumed",
    e.Heartbeat: lambda _: "heartbeat",
    e.Interrupted: _interrupted,
    e.TimeCredited: _credited,
    e.CorrectionMade: lambda b: f"correction of event {b.corrects}: {b.what} ({b.why})",
    e.SnapshotTaken: _snapshot,
    e.ScoreRequested: lambda b: f"score #{b.number} asked for" + (f": {b.note}" if b.note else ""),
    e.ScoreProgressed: lambda b: f"score #{b.number}: {b.stage}{_percent(b.fraction)}",
    e.ScoreRecorded: _recorded,
    e.CheckRun: _check,
    e.NoteWritten: lambda b: f"note: {b.text}",
    e.ShellOpened: lambda b: (
        f"shell opened: {b.command} (pid {b.pid})" + ("" if b.recording is not None else ", NOT RECORDED")
    ),
    e.ShellClosed: lambda b: f"shell closed (pid {b.pid}, exit code {b.exit_code}), {size(b.bytes)} recorded",
    e.RecordingGap: lambda b: f"gap in recording {b.recording}: {b.why}, {size(b.bytes_lost)} lost",
    e.CommandRun: _command,
    e.UsageReported: lambda b: (
        f"usage: {b.model}, {b.input_tokens} in, {b.output_tokens} out"
        + ("" if b.dollars is None else f", ${b.dollars:.4f}")
    ),
    e.ActivitySeen: _activity,
    e.HealthChanged: lambda b: f"{b.part} {b.light}" + (f": {b.reason}" if b.reason else ""),
    e.MessageSent: lambda b: f"message #{b.number}: {b.text}",
    e.MessageAcknowledged: lambda b: f"message #{b.number} acknowledged",
    e.WarningGiven: lambda b: f"warning: {b.minutes_left} minutes left",
    e.DeadlineReached: lambda _: "time is up",
    e.Submitted: lambda _: "submitted",
    e.SurveyAnswered: lambda b: f"survey: {len(b.answers)} answers",
    e.SessionClosed: _closed,
    e.CommentAdded: lambda b: (
        "comment" + ("" if b.elapsed_ms is None else f" at {duration(b.elapsed_ms)}") + f": {b.text}"
    ),
    e.VerdictGiven: lambda b: (
        f"verdict{' (blind)' if b.blind else ''}: {b.verdict}" + (f": {b.text}" if b.text else "")
    ),
    e.Rescored: lambda b: (
        f"rescored #{b.number}: {b.status} {figure(b.raw)}" + (f": {b.message}" if b.message else "")
    ),
}
