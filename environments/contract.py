"""What an environment is: the only thing the engine knows of one.

Errors, drawn once (each says what was tried, with what, why not, what to do)::

    EnvironmentFault
    ├── SpecificationInvalid     environment.toml does not decode; names file, key, expected, found
    ├── EnvironmentUnknown       no environment of that slug; names the nearest
    ├── ProfileUnavailable       this machine or version cannot run the profile
    ├── AssetsMissing            prepare has not run, or its files are damaged
    ├── SealBroken               a sealed archive cannot be opened
    ├── WorkerUnavailable        a worker could not be started (environments.worker)
    ├── CallFailed               the environment's process reported a fault or died (environments.calls)
    └── CalibrationFailed        the starting or the reference solution got no valid score (environments.calibrate)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import msgspec

CANARY = "rebench-workbench canary 6d0c1b5e-9a3f-4a52-8c1f-4c9d6a7b21e0"
"""Stands in every brief, sealed archive and record, so that a text which learnt from them can be told."""


class EnvironmentFault(Exception):
    """Base of every error an environment raises on purpose."""


class SpecificationInvalid(EnvironmentFault):
    """`environment.toml` does not say what the contract asks for."""


class EnvironmentUnknown(EnvironmentFault):
    """No environment has that slug."""


class ProfileUnavailable(EnvironmentFault):
    """The profile does not exist or cannot run on this machine."""


class AssetsMissing(EnvironmentFault):
    """Prepared files are absent or do not match their checksums."""


class SealBroken(EnvironmentFault):
    """A sealed archive could not be opened."""


class Direction(StrEnum):
    """Which raw scores are better."""

    LOWER = "lower"
    HIGHER = "higher"

    def better(self, candidate: float, incumbent: float) -> bool:
        """Whether `candidate` beats `incumbent`; equal scores do not."""
        return candidate < incumbent if self is Direction.LOWER else candidate > incumbent


class Counting(StrEnum):
    """Which of a session's valid scores counts."""

    BEST = "best"
    LAST = "last"


class ScoreStatus(StrEnum):
    """How a scoring ended. Only `VALID` carries a raw score."""

    VALID = "valid"
    INVALID = "invalid"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    INFRASTRUCTURE = "infrastructure"
    CANCELLED = "cancelled"


def hardware_class(gpus: Sequence[str], cpus: int) -> str:
    """Return the class of hardware that anchors belong to: `NVIDIA H200`, `4x NVIDIA H200`, or `cpu-2`."""
    if not gpus:
        return f"cpu-{cpus}"
    kinds = "+".join(sorted(set(gpus)))
    return kinds if len(gpus) == 1 else f"{len(gpus)}x {kinds}"


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the contract's values: frozen, decoded strictly."""


class Anchors(Value, frozen=True, forbid_unknown_fields=True):
    """Raw scores of the starting and the reference solution on one class of hardware."""

    start: float
    reference: float
    hardware: str
    """Hardware class, or `any` where the machine does not matter (a loss, not a time)."""
    source: str
    """`measured` here, or `published` with the paper."""
    measured_on: str | None = None
    repeats: int = 1
    start_spread: float | None = None
    reference_spread: float | None = None

    def normalise(self, raw: float) -> float:
        """Return (raw - start) / (reference - start), below 0 as 0, without upper limit (RE-Bench, section 3)."""
        return max(0.0, (raw - self.start) / (self.reference - self.start))


class Needs(Value, frozen=True, forbid_unknown_fields=True):
    """What a profile asks of the machine."""

    cpus: int = 1
    memory_gb: float = 1.0
    disk_gb: float = 1.0
    gpus: int = 0
    gpu_memory_gb: float = 0.0
    all_gpus: bool = False
    """Whether it uses all GPUs there are, `gpus` being the least: its anchors then belong to their number."""
    network: bool = False
    packages: tuple[str, ...] = ()
    """Distribution names that must be importable, e.g. `torch`."""
    programs: tuple[str, ...] = ()
    """Executables that must be on the path, e.g. `rustc`."""


class Limits(Value, frozen=True, forbid_unknown_fields=True):
    """What one scoring may use."""

    score_seconds: float
    check_seconds: float = 60.0
    memory_gb: float = 8.0
    processes: int = 256
    output_mb: float = 16.0


class Price(Value, frozen=True, forbid_unknown_fields=True):
    """What a model costs, in dollars a million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            price = getattr(self, name)
            if not (math.isfinite(price) and price >= 0):
                raise ValueError(f"the price {name} = {price!r} is no amount of money: a cap could not hold")


class Allowance(Value, frozen=True, forbid_unknown_fields=True):
    """The most that model calls may take; None is without limit."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "dollars"):
            limit = getattr(self, name)
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise ValueError(f"the limit {name} = {limit!r} is no amount: a cap could not hold")


class ModelBudget(Allowance, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which models an environment's sessions may ask through the gateway, and how much of them.

    The limits are the participant's own, and everybody's where `scoring` is not given.
    """

    models: dict[str, Price]
    """The only models that answer, with their prices."""
    largest_answer: int = 4096
    """Tokens one completion may have; reserved before the call is made."""
    scoring: Allowance | None = None
    """What each scoring may take, apart from what the participant takes."""
    own_model: bool = False
    """Whether the environment brings a model (`ServesModel`), which answers where the operator names no service."""


class Profile(Value, frozen=True, forbid_unknown_fields=True):
    """One size of an environment, with its own limits and anchors."""

    summary: str
    needs: Needs
    limits: Limits
    hours: float = 8.0
    """The time budget suggested for this profile."""
    anchors: tuple[Anchors, ...] = ()
    gateway: ModelBudget | None = None
    """Set where participants or submissions need a model: their only network."""
    hidden_packages: tuple[str, ...] = ()
    """Installed packages that hold held-out data; participants and submissions do not see them."""
    settings: dict[str, Any] = {}
    """Free values for the environment itself, e.g. `vocabulary = 4096`."""

    def hardware(self, gpus: Sequence[str], cpus: int) -> str:
        """Return the class of hardware this profile runs on where there are these GPUs and cores.

        What needs no GPU is classed by its cores, what uses one by that card, however many there are. Where it is not
        known which, because they differ, the whole machine is the class.
        """
        if self.needs.gpus == 0 and not self.needs.all_gpus:
            return hardware_class((), cpus)
        one = self.needs.gpus == 1 and not self.needs.all_gpus and len(set(gpus)) == 1
        return hardware_class(gpus[:1] if one else gpus, cpus)

    def anchors_for(self, hardware: str) -> Anchors | None:
        """Return the anchors measured on `hardware`, else those that hold on `any`, else None."""
        of = {anchors.hardware: anchors for anchors in self.anchors}
        return of.get(hardware) or of.get("any")


class SurveyQuestion(Value, frozen=True, forbid_unknown_fields=True):
    """One question asked after submission."""

    key: str
    ask: str
    choices: tuple[str, ...] = ()
    """Empty means free text."""


class EnvironmentSpec(Value, frozen=True, forbid_unknown_fields=True):
    """`environment.toml`, decoded."""

    slug: str
    title: str
    summary: str
    """One sentence for lists."""
    version: str
    direction: Direction
    raw_label: str
    """What the raw score is, e.g. `ln(loss - 3.0)`."""
    deliverables: tuple[str, ...]
    """Paths in the work tree that a submission must hold."""
    profiles: dict[str, Profile]
    counting: Counting = Counting.BEST
    scores_hidden: bool = False
    """Whether the participant never sees raw scores, in any variant."""
    snapshot_excludes: tuple[str, ...] = ()
    survey: tuple[SurveyQuestion, ...] = ()

    def profile(self, name: str) -> Profile:
        """Return the profile `name`.

        Raises:
            ProfileUnavailable: there is none of that name.
        """
        try:
            return self.profiles[name]
        except KeyError:
            raise ProfileUnavailable(
                f"{self.slug} has no profile {name!r}; it has {', '.join(self.profiles)}"
            ) from None


class AssetFolders(Value, frozen=True, forbid_unknown_fields=True):
    """Where one profile's prepared files live."""

    public: Path
    """Participants may read this; it is copied or linked beside the starter."""
    protected: Path
    """Held-out data and keys: owner only, masked from submissions."""


class GatewayAccess(Value, frozen=True, forbid_unknown_fields=True):
    """A way to the session's model gateway, for one scoring."""

    socket: Path
    """HTTP in the OpenAI protocol on this Unix socket; its folder may be mounted into a worker."""
    key: str
    own_model: bool = False
    """Whether the environment's own model answers, not a service that the operator named."""


class Submission(Value, frozen=True, forbid_unknown_fields=True):
    """A snapshot to check or score: never the live tree."""

    root: Path
    """Read-only checkout of the snapshot."""
    profile_name: str
    profile: Profile
    assets: AssetFolders
    scratch: Path
    """Empty folder that belongs to this scoring alone."""
    seed: int
    """Fresh for each call; recorded in the details."""
    gateway: GatewayAccess | None = None


class Problem(Value, frozen=True, forbid_unknown_fields=True):
    """One reason a submission would not be accepted."""

    what: str
    """What is wrong, naming the file, operator or shape."""
    where: str | None = None
    """`model.py:41`, where known."""
    hint: str | None = None
    """What to do about it."""


class CheckReport(Value, frozen=True, forbid_unknown_fields=True):
    """Whether a submission would be accepted; never a number."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return not self.problems


class ScoreReport(Value, frozen=True, forbid_unknown_fields=True):
    """The three parts of a score: `raw` counts, `message` is for the participant, `details` for the proctor."""

    status: ScoreStatus
    raw: float | None
    message: str
    details: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if (self.status is ScoreStatus.VALID) != (self.raw is not None):
            raise ValueError(f"a {self.status.value} score cannot have raw={self.raw!r}")
        if self.raw is not None and not math.isfinite(self.raw):
            raise ValueError(f"raw must be finite, not {self.raw!r}")

    @classmethod
    def valid(cls, raw: float, message: str, **details: Any) -> ScoreReport:
        return cls(status=ScoreStatus.VALID, raw=raw, message=message, details=details)

    @classmethod
    def rejected(cls, status: ScoreStatus, message: str, **details: Any) -> ScoreReport:
        return cls(status=status, raw=None, message=message, details=details)


class Progress(Value, frozen=True, forbid_unknown_fields=True):
    """How far a scoring or a preparation has come."""

    stage: str
    """`capturing the model`, `evaluating`, ..."""
    fraction: float | None = None
    """0..1, or None where it cannot be known."""


ReportProgress = Callable[[Progress], None]


class PrepareRequest(Value, frozen=True, forbid_unknown_fields=True):
    """What `prepare` is given: where to put things and what to open sealed archives with."""

    profile_name: str
    profile: Profile
    assets: AssetFolders
    passphrase: str


class ModelRefused(Exception):
    """An environment's own model cannot answer such a request; says why and what to do."""


class Model(Protocol):
    """A model that an environment brings; `environments.serve` puts it behind a session's gateway."""

    async def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a response in the OpenAI protocol; `path` is `chat/completions` or `completions`.

        Raises:
            ModelRefused: told to the caller as a bad request.
        """


class ServesModel(Protocol):
    """What an environment offers besides, where a profile's gateway has `own_model`."""

    def model(self, request: PrepareRequest) -> Model:
        """Return the profile's model, from what `prepare` left."""


class Environment(Protocol):
    """What `environments/<slug>/environment.py` offers, as an object named `environment`."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Fill both asset folders. Idempotent, resumable; raises EnvironmentFault with what is missing."""

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return work-tree path -> source file for everything the participant starts with."""

    def check(self, submission: Submission) -> CheckReport:
        """Say whether the submission would be accepted. Cheap; runs no untrusted code in this process."""

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Score the submission. Runs no untrusted code in this process."""
