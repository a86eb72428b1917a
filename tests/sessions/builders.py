"""Small builders that the tests of sessions share."""

from pathlib import Path

from environments.contract import (
    Anchors,
    AssetFolders,
    Counting,
    Direction,
    EnvironmentSpec,
    Limits,
    Needs,
    Profile,
    ScoreReport,
)
from sessions.host.opening import Opening
from sessions.host.scoring import Answer
from sessions.record.clock import Clock, ManualClock
from sessions.record.events import (
    Hardware,
    Isolation,
    IsolationFound,
    ParticipantKind,
    SessionOpened,
    SessionPolicy,
)
from sessions.record.log import Journal

ANCHORS = Anchors(start=2.0, reference=1.0, hardware="any", source="measured")
HARDWARE = Hardware("cpu-2", "a processor", 2, 2**33)
MINUTE = 60_000


def specification(**changes: object) -> EnvironmentSpec:
    fields: dict[str, object] = {
        "slug": "tiny",
        "title": "Tiny",
        "summary": "A number in a file.",
        "version": "1",
        "direction": Direction.LOWER,
        "raw_label": "the number",
        "deliverables": ("answer.txt",),
        "profiles": {"cpu": Profile("small", Needs(), Limits(score_seconds=20.0), anchors=(ANCHORS,))},
        "counting": Counting.BEST,
    }
    return EnvironmentSpec(**{**fields, **changes})  # type: ignore[arg-type]


def opened(**changes: object) -> SessionOpened:
    fields: dict[str, object] = {
        "schema": 1,
        "session": "s-test",
        "environment": specification(),
        "profile": "cpu",
        "anchors": ANCHORS,
        "policy": SessionPolicy(budget_ms=8 * 60 * MINUTE),
        "participant": "jo",
        "participant_kind": ParticipantKind.HUMAN,
        "work_tree": "/nowhere",
        "isolation": IsolationFound(Isolation.NONE),
        "hardware": HARDWARE,
        "software": {},
        "brief_sha256": "",
    }
    return SessionOpened(**{**fields, **changes})  # type: ignore[arg-type]


def journal_at(folder: Path, clock: Clock | None = None) -> Journal:
    return Journal(folder / "events.jsonl", clock or ManualClock())


def opening(folder: Path, **changes: object) -> Opening:
    starter = folder / "starter"
    starter.mkdir(exist_ok=True)
    (starter / "answer.txt").write_text("2.0\n")
    fields: dict[str, object] = {
        "environment": specification(),
        "profile": "cpu",
        "policy": SessionPolicy(budget_ms=60 * MINUTE, snapshot_every_ms=None),
        "participant": "jo",
        "participant_kind": ParticipantKind.HUMAN,
        "work_tree": folder / "work",
        "isolation": IsolationFound(Isolation.NONE),
        "hardware": HARDWARE,
        "brief": "# Tiny\n\nMake the number small.\n",
        "starter": {"answer.txt": starter / "answer.txt"},
        "assets": AssetFolders(folder / "public", folder / "protected"),
    }
    return Opening(**{**fields, **changes})  # type: ignore[arg-type]


def valid(raw: float, message: str = "fine") -> Answer:
    return Answer(score=ScoreReport.valid(raw, message, secret="held out"))
