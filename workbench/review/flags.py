"""What a reviewer should look at, each with its evidence: never a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from sessions.record import events as e
from sessions.record.clock import parse_utc
from sessions.record.fold import fold, instant_of
from sessions.record.state import SessionState
from workbench.ink.figures import duration, figure

BEYOND_REFERENCE = 1.25
"""Normalised scores above this deserve a look: the reference is good work."""
WALL_STEP_SECONDS = 5.0


class Kind(StrEnum):
    """The closed set of flags."""

    SCORE = "implausible score"
    RECORDING = "gap in a recording"
    SHELL = "unrecorded shell"
    CLOCK = "clock jump"
    INTERRUPTION = "interruption"
    SNAPSHOT = "incomplete snapshot"
    HEALTH = "part in trouble"
    ISOLATION = "unprotected"
    SCORER = "scorer failed"


class Flag(msgspec.Struct, frozen=True):
    """One thing to look at."""

    kind: Kind
    what: str
    seqs: tuple[int, ...]
    """Events that are the evidence."""


def flags(events: Sequence[e.Event]) -> tuple[Flag, ...]:
    """Return everything worth a look, in the order it happened."""
    state = fold(events)
    found = [*_isolation(state), *_scores(events, state), *_of_single_events(events), *_clock_steps(events)]
    return tuple(sorted(found, key=lambda flag: flag.seqs))


def _isolation(state: SessionState) -> Iterator[Flag]:
    if state.opened.isolation.level is e.Isolation.NONE:
        yield Flag(Kind.ISOLATION, "the participant could read held-out data and the record", (0,))


def _scores(events: Sequence[e.Event], state: SessionState) -> Iterator[Flag]:
    rows = {row.number: row for row in state.scores}
    for event in events:
        if not isinstance(event.body, e.ScoreRecorded):
            continue
        row = rows[event.body.number]
        if row.normalised is not None and row.normalised > BEYOND_REFERENCE:
            text = (
                f"score #{row.number}: {figure(row.raw)} is {row.normalised:.2f} of the way to the reference"
            )
            yield Flag(Kind.SCORE, text, (event.seq,))
        if event.body.status.value == "infrastructure":
            yield Flag(
                Kind.SCORER,
                f"score #{row.number} failed through our fault: {event.body.message}",
                (event.seq,),
            )


def _of_single_events(events: Sequence[e.Event]) -> Iterator[Flag]:
    for event in events:
        match event.body:
            case e.RecordingGap(recording=number, why=why, bytes_lost=lost):
                yield Flag(Kind.RECORDING, f"recording {number}: {why}, {lost} bytes lost", (event.seq,))
            case e.ShellOpened(recording=None, command=command, pid=pid):
                yield Flag(Kind.SHELL, f"pid {pid}: {command}", (event.seq,))
            case e.Interrupted(cause=cause, lost_ms=lost, counted=counted):
                whose = "counted" if counted else "given back"
                yield Flag(Kind.INTERRUPTION, f"{cause}, {duration(lost)}, {whose}", (event.seq,))
            case e.SnapshotTaken(status="partial" | "failed") as body:
                text = f"snapshot {body.number} is {body.status}: {body.problem or f'{body.skipped_count} paths not stored'}"
                yield Flag(Kind.SNAPSHOT, text, (event.seq,))
            case e.HealthChanged(light=e.Light.RED) as body:
                yield Flag(Kind.HEALTH, f"{body.part}: {body.reason}", (event.seq,))
            case _:
                pass


def _clock_steps(events: Sequence[e.Event]) -> Iterator[Flag]:
    """Find where the wall clock and the boot clock disagree about how long it was between two events."""
    for before, after in pairwise(events):
        if before.boot_id != after.boot_id:
            continue
        wall = (parse_utc(after.at) - parse_utc(before.at)).total_seconds()
        boot = instant_of(after).milliseconds_since(instant_of(before)) / 1000
        if abs(wall - boot) > WALL_STEP_SECONDS:
            text = f"the wall clock moved by {wall:+.0f} s while {boot:.0f} s passed; session time is not affected"
            yield Flag(Kind.CLOCK, text, (before.seq, after.seq))
