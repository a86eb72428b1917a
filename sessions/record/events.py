"""The closed vocabulary of a session: every kind of event, typed, frozen and decoded strictly."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Literal

import msgspec

from environments.contract import CANARY, Anchors, EnvironmentSpec, Problem, ScoreStatus

SCHEMA = 1


class PauseReason(StrEnum):
    """Why the clock stands still."""

    BREAK = "break"
    INFRASTRUCTURE = "infrastructure"
    PROCTOR = "proctor"
    SCORING = "scoring"
    LOST_CONTACT = "lost-contact"
    CRASH = "crash"
    API = "api"


class Breaks(StrEnum):
    """Who may stop the clock for a break."""

    ALLOWED = "allowed"
    PROCTOR = "proctor"
    NONE = "none"


class ScoringTime(StrEnum):
    """Whether the clock runs while a score is computed."""

    COUNTED = "counted"
    EXCLUDED = "excluded"


class Interruptions(StrEnum):
    """Whose time an interruption is. `AUTO`: a reboot is credited, anything else counts."""

    AUTO = "auto"
    COUNTED = "counted"
    CREDITED = "credited"


class Variant(StrEnum):
    """What the participant sees of scores."""

    MAIN = "main"
    HIDDEN_SCORE = "hidden_score"


class ParticipantKind(StrEnum):
    HUMAN = "human"
    AGENT = "agent"


class InterruptionCause(StrEnum):
    """What the host found when it looked at the clock again."""

    HOST_STOPPED = "host-stopped"
    REBOOT = "reboot"
    SUSPENDED = "suspended"


class SnapshotReason(StrEnum):
    START = "start"
    SCORE = "score"
    CHECK = "check"
    PAUSE = "pause"
    PERIODIC = "periodic"
    SUBMIT = "submit"
    DEADLINE = "deadline"


class Part(StrEnum):
    """Parts of the workbench whose health is watched."""

    RECORDER = "recorder"
    SNAPSHOTS = "snapshots"
    HOST = "host"
    DISK = "disk"
    GPU = "gpu"
    WATCHING = "watching"
    SCORER = "scorer"
    GATEWAY = "gateway"


class Light(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


class Isolation(StrEnum):
    """Who may read what; found by trying."""

    USER = "user"
    SANDBOX = "sandbox"
    NONE = "none"


class Verdict(StrEnum):
    VALID = "valid"
    VALID_WITH_NOTES = "valid with notes"
    REDO = "redo"
    EXCLUDE = "exclude"


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every event's own fields."""


class SessionPolicy(Body, frozen=True, forbid_unknown_fields=True):
    """The rules of one session; fixed when it opens."""

    budget_ms: int
    breaks: Breaks = Breaks.ALLOWED
    scoring_time: ScoringTime = ScoringTime.COUNTED
    interruptions: Interruptions = Interruptions.AUTO
    variant: Variant = Variant.MAIN
    snapshot_every_ms: int | None = 600_000
    warnings_minutes: tuple[int, ...] = (60, 15, 5, 1)


class IsolationFound(Body, frozen=True, forbid_unknown_fields=True):
    level: Isolation
    evidence: tuple[str, ...] = ()


class Hardware(Body, frozen=True, forbid_unknown_fields=True):
    """The machine, as found."""

    label: str
    """The hardware class anchors belong to, e.g. `cpu-2` or `NVIDIA H200`."""
    cpu: str
    cpus: int
    memory_bytes: int
    gpus: tuple[str, ...] = ()


class SessionOpened(Body, frozen=True, forbid_unknown_fields=True):
    schema: int
    session: str
    environment: EnvironmentSpec
    profile: str
    anchors: Anchors | None
    policy: SessionPolicy
    participant: str
    participant_kind: ParticipantKind
    work_tree: str
    isolation: IsolationFound
    hardware: Hardware
    software: dict[str, str]
    brief_sha256: str
    signer: str | None = None
    """The operator's public key (Ed25519, hex), which signs the closing event."""
    canary: str = CANARY


class ConsentGiven(Body, frozen=True, forbid_unknown_fields=True):
    rules_sha256: str


class StartingScoreRecorded(Body, frozen=True, forbid_unknown_fields=True):
    snapshot: int
    commit: str
    raw: float | None
    status: ScoreStatus
    message: str
    seconds: float
    details_sha256: str | None = None


class ClockStarted(Body, frozen=True, forbid_unknown_fields=True):
    pass


class BriefShown(Body, frozen=True, forbid_unknown_fields=True):
    pass


class ClockPaused(Body, frozen=True, forbid_unknown_fields=True):
    reason: PauseReason
    note: str = ""


class ClockResumed(Body, frozen=True, forbid_unknown_fields=True):
    pass


class Heartbeat(Body, frozen=True, forbid_unknown_fields=True):
    pass


class Interrupted(Body, frozen=True, forbid_unknown_fields=True):
    """The host was not there from the previous event until now."""

    cause: InterruptionCause
    lost_ms: int
    counted: bool
    torn_bytes: int = 0
    """Length of a half-written last line that was dropped."""


class TimeCredited(Body, frozen=True, forbid_unknown_fields=True):
    """A proctor gives time back (positive) or takes it (negative)."""

    credit_ms: int
    why: str


class CorrectionMade(Body, frozen=True, forbid_unknown_fields=True):
    """A remark that an earlier event is wrong; the event itself stays."""

    corrects: int
    """`seq` of the event."""
    what: str
    why: str


class SkippedFile(Body, frozen=True, forbid_unknown_fields=True):
    path: str
    reason: str


class SnapshotTaken(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    reason: SnapshotReason
    status: Literal["complete", "partial", "failed"]
    commit: str | None
    tree: str | None
    files: int
    bytes: int
    artifacts: int
    seconds: float
    skipped_count: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    """The first few; all of them are in the snapshot's manifest."""
    score: int | None = None
    """The scoring this snapshot was taken for."""
    problem: str | None = None


class ScoreRequested(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    note: str = ""
    snapshot: int | None = None
    """Set when a snapshot that exists already is scored: the final one."""


class ScoreProgressed(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    stage: str
    fraction: float | None = None


class ScoreRecorded(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    snapshot: int | None
    commit: str | None
    raw: float | None
    status: ScoreStatus
    message: str
    seconds: float
    details_sha256: str | None = None

    def __post_init__(self) -> None:
        if self.raw is not None and self.commit is None:
            raise ValueError(f"score {self.number} has a raw score but no snapshot")


class CheckRun(Body, frozen=True, forbid_unknown_fields=True):
    snapshot: int | None
    accepted: bool
    problems: tuple[Problem, ...]
    seconds: float
    fault: str | None = None
    """Set when the check itself broke."""


class NoteWritten(Body, frozen=True, forbid_unknown_fields=True):
    text: str


class ShellOpened(Body, frozen=True, forbid_unknown_fields=True):
    recording: int | None
    """None: a shell we did not open and cannot record."""
    command: str
    pid: int


class ShellClosed(Body, frozen=True, forbid_unknown_fields=True):
    recording: int | None
    pid: int
    exit_code: int | None
    bytes: int = 0
    sha256: str | None = None


class RecordingGap(Body, frozen=True, forbid_unknown_fields=True):
    recording: int
    why: str
    bytes_lost: int = 0


class CommandRun(Body, frozen=True, forbid_unknown_fields=True):
    """A command an agent had executed in the work folder."""

    command: str
    exit_code: int | None
    timed_out: bool
    seconds: float
    output_bytes: int
    output_sha256: str
    truncated: bool


SESSION_ACCOUNT = "session"
"""The gateway's account that a participant pays from, and scorings without an allowance of their own."""


class UsageReported(Body, frozen=True, forbid_unknown_fields=True):
    model: str
    input_tokens: int
    output_tokens: int
    dollars: float | None = None
    account: str | None = None
    """Whose budget paid, for calls through the gateway; None for what an agent says of itself."""


class ActivitySeen(Body, frozen=True, forbid_unknown_fields=True):
    created: int
    modified: int
    deleted: int
    paths: tuple[str, ...]
    """A sample."""
    degraded: str | None = None


class HealthChanged(Body, frozen=True, forbid_unknown_fields=True):
    part: Part
    light: Light
    reason: str = ""


class MessageSent(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    text: str


class MessageAcknowledged(Body, frozen=True, forbid_unknown_fields=True):
    number: int


class WarningGiven(Body, frozen=True, forbid_unknown_fields=True):
    minutes_left: int


class DeadlineReached(Body, frozen=True, forbid_unknown_fields=True):
    pass


class Submitted(Body, frozen=True, forbid_unknown_fields=True):
    pass


class SurveyAnswered(Body, frozen=True, forbid_unknown_fields=True):
    answers: dict[str, str]


class SessionClosed(Body, frozen=True, forbid_unknown_fields=True):
    elapsed_ms: int
    counted_score: int | None
    """Number of the scoring that counts."""
    raw: float | None
    normalised: float | None
    digest: str
    """SHA-256 over everything in the record beside the log."""
    reason: str
    signature: str | None = None
    """Over this event and the chain before it; see `signing`."""


class CommentAdded(Body, frozen=True, forbid_unknown_fields=True):
    text: str
    elapsed_ms: int | None = None


class VerdictGiven(Body, frozen=True, forbid_unknown_fields=True):
    verdict: Verdict
    text: str = ""
    blind: bool = False


class Rescored(Body, frozen=True, forbid_unknown_fields=True):
    number: int
    raw: float | None
    status: ScoreStatus
    message: str
    seconds: float


SESSION_KINDS: tuple[type[Body], ...] = (
    SessionOpened, ConsentGiven, StartingScoreRecorded, ClockStarted, BriefShown, ClockPaused, ClockResumed,
    Heartbeat, Interrupted, TimeCredited, CorrectionMade, SnapshotTaken, ScoreRequested, ScoreProgressed,
    ScoreRecorded, CheckRun, NoteWritten, ShellOpened, ShellClosed, RecordingGap, CommandRun, UsageReported,
    ActivitySeen, HealthChanged, MessageSent, MessageAcknowledged, WarningGiven, DeadlineReached, Submitted,
    SurveyAnswered, SessionClosed,
)  # fmt: skip
REVIEW_KINDS: tuple[type[Body], ...] = (CommentAdded, VerdictGiven, Rescored)


def kind_of(body: type[Body]) -> str:
    """Return the kind under which a body stands in the log: `ScoreRecorded` is `score_recorded`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", body.__name__).lower()


KIND_OF: dict[type[Body], str] = {body: kind_of(body) for body in SESSION_KINDS + REVIEW_KINDS}
BODY_OF: dict[str, type[Body]] = {kind: body for body, kind in KIND_OF.items()}
_DECODERS = {kind: msgspec.json.Decoder(body) for kind, body in BODY_OF.items()}


class Event(msgspec.Struct, frozen=True):
    """One thing that happened."""

    seq: int
    at: str
    boot_id: str
    boottime: int
    elapsed: int
    """Session milliseconds, for readers; recomputed by `verify`."""
    prev: str
    """SHA-256 of the line before, in hex."""
    by: str
    """`participant`, `agent`, `host`, or `proctor NAME`."""
    body: Body

    @property
    def kind(self) -> str:
        return KIND_OF[type(self.body)]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event as it stands in the log."""

    seq: int
    at: str
    boot_id: str
    boottime: int
    elapsed: int
    prev: str
    by: str
    kind: str
    body: msgspec.Raw


class EventUnreadable(ValueError):
    """A line is not an event of this vocabulary."""


_encoder = msgspec.json.Encoder()
_line_decoder = msgspec.json.Decoder(_Line)


def encode(event: Event) -> bytes:
    """Return the event's line, without a line end."""
    return _encoder.encode(
        _Line(
            event.seq,
            event.at,
            event.boot_id,
            event.boottime,
            event.elapsed,
            event.prev,
            event.by,
            event.kind,
            msgspec.Raw(_encoder.encode(event.body)),
        )
    )


def decode(line: bytes) -> Event:
    """Read a line of the log.

    Raises:
        EventUnreadable: it is not JSON, an unknown kind, or has unknown, missing or ill-typed fields; the
            message names the field.
    """
    try:
        found = _line_decoder.decode(line)
        decoder = _DECODERS.get(found.kind)
        if decoder is None:
            raise EventUnreadable(f"unknown kind of event {found.kind!r} at seq {found.seq}")
        body = decoder.decode(found.body)
    except (msgspec.DecodeError, ValueError) as error:
        if isinstance(error, EventUnreadable):
            raise
        raise EventUnreadable(f"not an event: {error}") from error
    return Event(
        found.seq, found.at, found.boot_id, found.boottime, found.elapsed, found.prev, found.by, body
    )


def as_plain(event: Event) -> dict[str, Any]:
    """Return the event as plain JSON values, `kind` beside `body`, for the wire and exports."""
    plain: dict[str, Any] = msgspec.json.decode(encode(event))
    return plain
