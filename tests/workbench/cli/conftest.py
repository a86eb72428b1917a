"""A home of its own for each test, records told by hand, and commands run in this process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from environments.contract import ScoreStatus
from sessions.record.clock import ManualClock
from sessions.record.events import (
    Body,
    BriefShown,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    ConsentGiven,
    NoteWritten,
    PauseReason,
    ScoreRecorded,
    ScoreRequested,
    SessionClosed,
    SnapshotReason,
    SnapshotTaken,
    StartingScoreRecorded,
    Submitted,
)
from sessions.record.log import Journal
from sessions.record.store import Record, Store
from tests.sessions.builders import opened
from tests.workbench.cli.fake_host import FakeHost
from workbench.cli import run as run_command

TINY_ENVIRONMENTS = Path(__file__).with_name("tiny_environment")
COMMIT = "a91f3c0" + "0" * 33


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home; sockets in a short path of their own, since their length is limited."""
    sockets = tempfile.mkdtemp(prefix="rw-")
    monkeypatch.setenv("REBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REBENCH_RUNTIME", sockets)
    monkeypatch.setenv("REBENCH_ENVIRONMENTS", str(TINY_ENVIRONMENTS))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    shutil.rmtree(sockets, ignore_errors=True)


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of this process's own; returns its code and what it said."""

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run_command(arguments)
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return run


class Story:
    """A record told event by event on a clock that moves by hand."""

    def __init__(self, record: Record, work_tree: Path, **changes: object) -> None:
        self.record = record
        self.clock = ManualClock()
        self.work_tree = work_tree
        work_tree.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(record.log, self.clock)
        self.tell(opened(session=record.session, work_tree=str(work_tree), **changes))
        record.brief.write_text("# Tiny\n\nMake the number small. [bold]Not markup.[/]\n")

    def tell(self, body: Body, by: str = "host", after: float = 1.0) -> None:
        self.clock.advance(after)
        self.journal.append(body, by)

    def begin(self) -> Story:
        self.score(0, 2.0, starting=True)
        self.tell(ConsentGiven("0" * 64), "participant")
        self.tell(ClockStarted(), "participant")
        self.tell(BriefShown(), "participant")
        return self

    def score(self, number: int, raw: float | None, *, note: str = "", message: str = "fine",
              status: ScoreStatus | None = None, starting: bool = False) -> Story:  # fmt: skip
        reason = SnapshotReason.START if starting else SnapshotReason.SCORE
        taken = len(self.journal.state.snapshots)
        self.tell(ScoreRequested(number, note), "participant", 60.0)
        self.tell(SnapshotTaken(taken, reason, "complete", COMMIT, "b" * 40, 1, 4, 0, 0.1, score=number))
        found = status or (ScoreStatus.VALID if raw is not None else ScoreStatus.INVALID)
        if starting:
            self.tell(StartingScoreRecorded(taken, COMMIT, raw, found, message, 1.0))
        else:
            self.tell(ScoreRecorded(number, taken, COMMIT, raw, found, message, 1.0))
        return self

    def note(self, text: str) -> Story:
        self.tell(NoteWritten(text), "participant", 30.0)
        return self

    def pause(self, minutes: float = 12.0) -> Story:
        self.tell(ClockPaused(PauseReason.BREAK, "lunch"), "participant")
        self.tell(ClockResumed(), "participant", minutes * 60)
        return self

    def close(self) -> Story:
        state = self.journal.state
        counted = state.counted
        self.tell(Submitted(), "participant")
        self.tell(
            SessionClosed(
                state.elapsed_ms(self.clock.now()),
                None if counted is None else counted.number,
                None if counted is None else counted.raw,
                None if counted is None else counted.normalised,
                "0" * 64,
                "submit",
            )
        )
        return self


@pytest.fixture
def story(home: Path, tmp_path: Path) -> Callable[..., Story]:
    def told(**changes: object) -> Story:
        record = Store().create()
        return Story(record, tmp_path / f"work-{record.session}", **changes)

    return told


@pytest.fixture
def host_for() -> Iterator[Callable[..., FakeHost]]:
    """Start a fake host on a record; it ends with the test."""
    started: list[FakeHost] = []

    def start(record: Record, **answers: object) -> FakeHost:
        started.append(FakeHost(record, **answers))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for host in started:
        host.close()
