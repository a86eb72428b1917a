"""Recomputes a record from its log and says, in words, the first thing that does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from environments.contract import ScoreReport, ScoreStatus
from sessions.audit.reviewing import read_reviews
from sessions.host.digest import record_digest
from sessions.record.events import Event, Interrupted, SessionClosed, SessionOpened, ShellClosed, ShellOpened
from sessions.record.fold import EventImpossible, apply, instant_of
from sessions.record.log import FIRST_PREV, LogDamaged, iter_chain, lines_of
from sessions.record.signing import KEY_NAME, holds, public_key
from sessions.record.state import SessionState
from sessions.record.store import Record
from sessions.snapshots import SnapshotStore

TOLERANCE_MS = 2
"""Rounding of nanoseconds to milliseconds."""


class VerifyReport(msgspec.Struct, frozen=True):
    """What `verify` found."""

    session: str
    events: int
    closed: bool
    problems: tuple[str, ...]
    """The first is the first bad record; empty means sound."""
    head: str = ""
    """SHA-256 of the last line: keep it elsewhere, and nobody can rewrite the log unnoticed."""
    signer: str | None = None
    remarks: tuple[str, ...] = ()
    """Worth knowing, no damage: a torn last line, snapshots taken in part."""

    @property
    def sound(self) -> bool:
        return not self.problems


def verify(record: Record, *, deep: bool = True) -> VerifyReport:
    """Check the chain, the arithmetic, every snapshot, score, recording and the closing digest."""
    problems: list[str] = []
    remarks: list[str] = []
    whole, torn = lines_of(record.log.read_bytes())
    if torn:
        remarks.append(f"the log ends in {len(torn)} bytes of a half-written line, which were dropped")
    state: SessionState | None = None
    count, head = 0, FIRST_PREV
    last: Event | None = None
    seals: dict[int, str | None] = {}
    try:
        for event, digest in iter_chain(whole):
            state = _follow(state, event, problems)
            count, head = count + 1, digest
            last = event
            _note_recording(event, seals)
    except (LogDamaged, EventImpossible) as error:
        problems.append(str(error))
    if state is not None and not problems:
        recordings = _recordings(record, seals)
        remarks.extend(recordings.torn)
        problems.extend(_beside_the_log(record, state, recordings.problems, deep=deep))
        problems.extend(_signature(state, last))
        remarks.extend(_stranger(record, state))
    partial = [] if state is None else [s for s in state.snapshots if s.status != "complete"]
    remarks.extend(f"snapshot {s.number} is {s.status}: {s.skipped_count} paths not stored" for s in partial)
    closed = state is not None and state.closed is not None
    signer = None if state is None else state.opened.signer
    return VerifyReport(record.session, count, closed, tuple(problems), head, signer, tuple(remarks))


def _follow(state: SessionState | None, event: Event, problems: list[str]) -> SessionState:
    """Apply one event and check what it claims of time."""
    after = apply(state, event)
    now = instant_of(event)
    if abs(after.elapsed_ms(now) - event.elapsed) > TOLERANCE_MS:
        problems.append(
            f"seq {event.seq} ({event.kind}) says {event.elapsed} ms elapsed where the events before it give "
            f"{after.elapsed_ms(now)} ms"
        )
    if state is None:
        return after
    if event.boot_id == state.last.boot_id and event.boottime < state.last.boottime:
        problems.append(
            f"seq {event.seq} ({event.kind}) is earlier on the boot clock than the event before it"
        )
    if event.boot_id != state.last.boot_id and not isinstance(event.body, Interrupted):
        problems.append(f"seq {event.seq} ({event.kind}) comes from another boot with no interruption noted")
    if isinstance(event.body, Interrupted):
        gap = now.milliseconds_since(state.last)
        if abs(gap - event.body.lost_ms) > 1000:
            problems.append(
                f"seq {event.seq} (interrupted) claims {event.body.lost_ms} ms where the clocks say {gap} ms"
            )
    return after


def _note_recording(event: Event, seals: dict[int, str | None]) -> None:
    """Remember which recordings the log speaks of, and the hash that seals each closed one."""
    if isinstance(event.body, ShellOpened) and event.body.recording is not None:
        seals.setdefault(event.body.recording, None)
    elif isinstance(event.body, ShellClosed) and event.body.recording is not None:
        seals[event.body.recording] = event.body.sha256


def _beside_the_log(
    record: Record, state: SessionState, recordings: list[str], *, deep: bool
) -> Iterator[str]:
    opened = state.opened
    if opened.session != record.session:
        yield f"the folder is called {record.session}, the log speaks of {opened.session}"
    yield from _brief(record, opened)
    yield from _scores(record, state)
    yield from _snapshots(record, state, deep=deep)
    yield from recordings
    yield from _review(record)
    if state.closed is not None:
        yield from _closing(record, state, state.closed)


def _signature(state: SessionState, last: Event | None) -> Iterator[str]:
    signer = state.opened.signer
    if last is None or not isinstance(last.body, SessionClosed) or signer is None:
        return
    if last.body.signature is None:
        yield "the closing event is not signed, though the session was opened with a signer"
    elif not holds(signer, state.opened.session, last.prev, last.body):
        yield "the signature under the closing event does not hold: the log was written anew after it was signed"


def _stranger(record: Record, state: SessionState) -> Iterator[str]:
    """Say when somebody else's key signed: the signature proves nothing about who that is."""
    own = record.home / KEY_NAME
    signer = state.opened.signer
    if signer is None:
        yield "nobody signed this record: whoever owned the machine could have written it anew"
    elif not own.exists() or public_key(own) != signer:
        yield f"signed by another store's key, {signer[:16]}…; compare it with the key its proctor gives"


def _brief(record: Record, opened: SessionOpened) -> Iterator[str]:
    if not record.brief.exists():
        yield "brief.md is missing"
    elif sha256(record.brief.read_bytes()).hexdigest() != opened.brief_sha256:
        yield "brief.md was changed after the session was opened"


def _scores(record: Record, state: SessionState) -> Iterator[str]:
    for row in state.scores:
        if row.details_sha256 is None:
            continue
        report = record.score_folder(row.number) / "report.json"
        if not report.exists():
            yield f"the report of score {row.number} is missing"
        elif sha256(content := report.read_bytes()).hexdigest() != row.details_sha256:
            yield f"the report of score {row.number} was changed after it was recorded"
        elif _reported(content) != (row.status, row.raw, row.message):
            yield f"score {row.number} says something else than its report"


def _review(record: Record) -> Iterator[str]:
    try:
        read_reviews(record)
    except LogDamaged as error:
        yield f"review.jsonl: {error}"


def _reported(content: bytes) -> tuple[ScoreStatus, float | None, str] | None:
    try:
        report = msgspec.json.decode(content, type=ScoreReport)
    except msgspec.DecodeError:
        return None
    return report.status, report.raw, report.message


def _snapshots(record: Record, state: SessionState, *, deep: bool) -> Iterator[str]:
    taken = [snapshot for snapshot in state.snapshots if snapshot.commit is not None]
    if not taken:
        return
    for snapshot in taken:
        ref = _ref(record.folder, snapshot.number)
        if ref != snapshot.commit:
            found = ref[:12] if ref else "nothing"
            named = (snapshot.commit or "")[:12]
            yield f"snapshot {snapshot.number} was swapped: the log names {named}, the store {found}"
    if deep:
        yield from SnapshotStore(record.folder).verify()


def _ref(folder: Path, number: int) -> str | None:
    try:
        return (folder / "snapshots.git" / "refs" / "snapshots" / str(number)).read_text().strip()
    except OSError:
        return None


class _Recordings(NamedTuple):
    problems: list[str]
    torn: list[str]


def _recordings(record: Record, seals: dict[int, str | None]) -> _Recordings:
    """Check every recording there is, and that each the log speaks of is there."""
    from sessions.recording.verifying import examine

    found = _Recordings([], [])
    there = {int(folder.name) for folder in record.recordings.glob("*") if folder.name.isdecimal()}
    for number in sorted(there | seals.keys()):
        if number not in there:
            found.problems.append(f"recording {number} is missing: a shell was opened under it")
            continue
        findings = examine(record.recordings / str(number), seals.get(number))
        found.problems.extend(f"recording {number}: {problem}" for problem in findings.problems)
        if findings.torn:
            found.torn.append(f"recording {number}: {findings.torn}")
    return found


def _closing(record: Record, state: SessionState, closed: SessionClosed) -> Iterator[str]:
    counted = state.counted
    if (closed.counted_score, closed.raw) != (
        None if counted is None else counted.number,
        None if counted is None else counted.raw,
    ):
        yield "the closing event names another score than the events before it give"
    if record_digest(record) != closed.digest:
        yield "something beside the log was changed, added or removed after the session was closed"
