"""The values that go into and come out of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from environments.contract import EnvironmentFault, Limits, ScoreStatus, Value


class WorkerUnavailable(EnvironmentFault):
    """The worker could not be started, or died before any of the participant's code ran: our fault, never theirs."""


class WorkerLimits(Value, frozen=True):
    """What one worker may use. Seconds count from the moment our own start-up is done."""

    seconds: float
    """Wall clock for one answer."""
    start_seconds: float = 120.0
    """Wall clock for importing the entry and its libraries, before the participant's code."""
    memory_gb: float = 8.0
    """Of the whole process tree, private file systems included."""
    cpus: float | None = None
    """Cores' worth of processor time; None leaves the machine's."""
    threads: int = 1
    """OMP_NUM_THREADS and its kin."""
    processes: int = 256
    file_gb: float = 4.0
    """Largest single file, and the size of the private /tmp."""
    disk_gb: float | None = None
    """Of all its writable mounts together; None does not look."""
    output_mb: float = 16.0
    """Of standard output and error kept; the rest is read and dropped."""
    answer_mb: float = 4096.0
    """Largest answer."""

    @classmethod
    def of(cls, limits: Limits, **changes: Any) -> WorkerLimits:
        """Return the worker limits that a profile's scoring limits ask for."""
        given: dict[str, Any] = {
            "seconds": limits.score_seconds,
            "memory_gb": limits.memory_gb,
            "processes": limits.processes,
            "output_mb": limits.output_mb,
        }
        return cls(**{**given, **changes})


@dataclass(frozen=True)
class Mount:
    """A file or folder the worker sees. Read-only unless it says otherwise."""

    source: Path
    writable: bool = False
    """A writable folder belongs to the worker's account while it runs; give it a scratch copy, never the original."""


@dataclass(frozen=True)
class WorkerJob:
    """Everything one worker needs; see the package's docstring for an example."""

    entry: Path
    """OUR script with `def answer(request) -> (body, blobs)`; it loads the participant's code."""
    mounts: Mapping[str, Mount]
    """Name -> what is visible; conventionally `root` for the snapshot, `public` for public assets."""
    limits: WorkerLimits
    body: Mapping[str, Any] = field(default_factory=dict)
    """The JSON part of the request."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    modules: tuple[Path, ...] = ()
    """Further trusted files that the entry imports."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to the scrubbed environment variables."""
    descriptors: Mapping[str, int] = field(default_factory=dict)
    """Name -> file descriptor the worker inherits, e.g. shared memory; read `request.descriptors`."""
    masks: tuple[Path, ...] = ()
    """Hidden even where a parent of theirs is visible. Protected assets, the store and corpora always are."""
    hidden_packages: tuple[str, ...] = ()
    """Importable packages that hold text the participant must not read: a profile's `hidden_packages`."""
    gpus: bool = False
    network: bool = False
    discreet: bool = False
    """The request holds held-out content: keep what the participant's code says (exceptions' text) out of `message`."""


class Level(StrEnum):
    """How strongly the worker was kept apart, strongest first."""

    SANDBOX_ACCOUNT = "sandbox+account"
    """bubblewrap, and an unprivileged account inside."""
    SANDBOX = "sandbox"
    """bubblewrap as the same user."""
    ACCOUNT = "account"
    """No bubblewrap; another account, its own network where the kernel allows."""
    GROUP = "group"
    """Only its own process group: protects against accidents."""


class Confinement(Value, frozen=True):
    """What was in force, as found when the worker ran; goes into a score's details."""

    level: Level
    network: str
    """`none`, `shared`, or `open` where it could not be taken away."""
    memory: str
    """`cgroup2`, `cgroup1` or `rlimit+watch`."""
    processes: str
    """`cgroup`, `rlimit` or `watch`."""
    emptiness: str = "unchecked"
    """How it was proved that nothing survived: `cgroup`, `pid-namespace`, `account`, `descendants`."""
    survivors: int = 0
    """Processes still there after the kill; anything but 0 is a fault of ours."""
    gpu_survivors: int | None = 0
    """Processes that still held GPU memory; None where NVML could not say."""


class FailureKind(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    NO_ANSWER = "no-answer"
    PROTOCOL = "protocol"

    @property
    def status(self) -> ScoreStatus:
        """The scoring status a failure of this kind usually means."""
        return _STATUS[self]


_STATUS = {
    FailureKind.TIMEOUT: ScoreStatus.TIMEOUT,
    FailureKind.OUT_OF_MEMORY: ScoreStatus.OUT_OF_MEMORY,
    FailureKind.CRASHED: ScoreStatus.CRASHED,
    FailureKind.NO_ANSWER: ScoreStatus.CRASHED,
    FailureKind.PROTOCOL: ScoreStatus.INVALID,
}


@dataclass(frozen=True)
class Answered:
    """One whole answer. It is still only data from an untrusted process: check it."""

    body: dict[str, Any]
    blobs: dict[str, bytes]
    seconds: float
    """From the request to the last byte of the answer."""
    log: str
    """Tail of the worker's output: for the proctor, not for the participant."""
    confinement: Confinement
    seconds_until_gone: float | None = None
    """From the request to the death of the worker's last process, where it was `concluded`: nobody worked longer."""


@dataclass(frozen=True)
class Failed:
    """No answer, and why."""

    kind: FailureKind
    message: str
    """One sentence for the participant."""
    seconds: float
    log: str
    """Tail of the worker's output: for the proctor, not for the participant."""
    confinement: Confinement
    where: str | None = None
    """`model.py:41`, where the participant's code raised."""

    @property
    def status(self) -> ScoreStatus:
        return self.kind.status


WorkerOutcome = Answered | Failed
