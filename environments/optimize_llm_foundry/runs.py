"""Runs one finetune.sh in a sandbox on a clean copy: the clock is outside, and the result is taken the moment it stops."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import AssetsMissing, Limits, ReportProgress, ScoreStatus
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.result import ResultRefused, files_below, take
from environments.optimize_llm_foundry.settings import FoundrySettings
from environments.worker.output import printable
from environments.worker.owners import remove

if TYPE_CHECKING:
    from environments.worker import Confinement, WorkerLimits

HERE = Path(__file__).parent
SCRIPT = "finetune.sh"
_NOT_COPIED = {lines.OUTPUT, lines.WORK, "base_model", "data", ".git", "__pycache__"}
_ROOM_FOR_RESULT = 64 * 2**20


@dataclass(frozen=True)
class Job:
    """What one run computes."""

    options: Mapping[str, Any]
    rows: bytes
    """JSONL."""
    base: Path
    """Folder of the base model."""


@dataclass(frozen=True)
class Ran:
    """A run that left a folder of plain files."""

    seconds: float
    result: Path
    """Our own copy."""
    left_running: tuple[str, ...]
    confinement: Confinement
    log: str


@dataclass(frozen=True)
class NotRan:
    """No result, and why."""

    status: ScoreStatus
    message: str
    seconds: float
    log: str
    confinement: Confinement | None = None


@dataclass(frozen=True)
class Sandbox:
    """How runs are confined: alike for the submission and the untouched script."""

    limits: Limits
    settings: FoundrySettings
    masks: tuple[Path, ...]
    hidden_packages: tuple[str, ...] = ()
    disk_gb: float | None = None
    """What one run may write."""

    def worker_limits(self, seconds: float) -> WorkerLimits:
        from environments.worker import WorkerLimits

        return WorkerLimits.of(
            self.limits,
            seconds=seconds,
            threads=self.settings.threads,
            file_gb=_file_gb(self.limits),
            disk_gb=self.disk_gb,
            answer_mb=1.0,
        )


def lay_out(source: Path, work: Path, job: Job) -> None:
    """Fill the empty folder `work`: the script's files without old outputs, and what this run computes on."""
    shutil.copytree(source, work, symlinks=True, ignore=_old_outputs(source))
    for name, content in ((lines.FILE, lines.to_yaml(job.options)), (job.options["data"], job.rows)):
        target = work / name
        _clear(work, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    _clear(work, job.options["model"])
    try:
        shutil.copytree(job.base, work / job.options["model"])
    except OSError as error:
        raise AssetsMissing(
            f"the base model {job.base} cannot be read ({error}); run `rebench-workbench env prepare` again"
        ) from error


def run(
    source: Path, folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
) -> Ran | NotRan:
    """Run the script of `source` in the empty folder `folder` and take its result.

    Raises:
        WorkerUnavailable: nothing ran.
    """
    work, kept = folder / "work", folder / "result" / lines.OUTPUT
    try:
        lay_out(source, work, job)
        return _run(work, kept, job, sandbox, seconds, report)
    finally:
        remove(work)  # checkpoints take room


def _run(
    work: Path, kept: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
) -> Ran | NotRan:
    from environments.worker import Failed, Mount, WorkerJob, open_worker

    started_with = files_below(work)
    most = sum(file.stat().st_size for file in job.base.iterdir()) * 2 + _ROOM_FOR_RESULT
    worker_job = WorkerJob(
        entry=HERE / "run_script.py",
        mounts={"work": Mount(work, writable=True)},
        limits=sandbox.worker_limits(seconds),
        masks=sandbox.masks,
        hidden_packages=sandbox.hidden_packages,
        gpus=sandbox.settings.gpus,
    )
    with open_worker(worker_job, report) as worker:
        outcome = worker.ask({}, {})
        if isinstance(outcome, Failed):
            message = (
                f"{SCRIPT} was not done within {seconds:.0f} s"
                if outcome.status is ScoreStatus.TIMEOUT
                else outcome.message
            )
            return NotRan(outcome.status, message, outcome.seconds, outcome.log, outcome.confinement)
        ended = worker.concluded(outcome)
    if isinstance(ended, Failed):
        return NotRan(ended.status, ended.message, ended.seconds, ended.log, ended.confinement)
    # Every process is dead by now: what lies there was there when the clock stopped.
    refused = None
    try:
        take(work / lines.OUTPUT, kept, most, started_with)
    except ResultRefused as error:
        refused = str(error)
    took = ended.seconds if ended.seconds_until_gone is None else ended.seconds_until_gone
    left = _names(ended.body.get("left_running"))
    if shown := _why_invalid(ended.body, left, refused, ended.log):
        return NotRan(*shown, took, ended.log, ended.confinement)
    return Ran(took, kept, left, ended.confinement, ended.log)


def _why_invalid(
    body: Mapping[str, Any], left: tuple[str, ...], refused: str | None, log: str
) -> tuple[ScoreStatus, str] | None:
    going_on = f"; when it ended, {', '.join(left)} still ran" if left else ""
    if body.get("code") != 0:
        said = [line for line in map(_printable_line, log.split("\n")) if line]
        last = f"; the last that it printed: {said[-1]}" if said else ""
        return ScoreStatus.CRASHED, f"{SCRIPT} {printable(body.get('how'), 60)}{going_on}{last}"
    if refused is not None:
        return ScoreStatus.INVALID, refused + going_on
    return None


def _names(found: object) -> tuple[str, ...]:
    """Return what an untrusted process says as printable names."""
    names = found if isinstance(found, list) else []
    return tuple(printable(name, 40) for name in names[:20])


def _printable_line(line: str) -> str:
    return printable(line, 200)


def _old_outputs(source: Path) -> Any:
    def ignore(folder: str, names: list[str]) -> set[str]:
        return _NOT_COPIED & set(names) if Path(folder) == source else {"__pycache__"} & set(names)

    return ignore


def _clear(work: Path, name: str) -> None:
    """Remove what a submission has in the place of one of our files, links above it included."""
    at = work
    for part in Path(name).parts:
        at /= part
        if at.is_symlink() or at.is_file():
            at.unlink()
            return
    remove(at)


def _file_gb(limits: Limits) -> float:
    return max(4.0, limits.memory_gb)
