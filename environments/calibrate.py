"""Runs the starting and the reference solution here: anchors with their spread, and the proof that an environment scores right."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

from environments import assets, calls
from environments.contract import (
    Anchors,
    EnvironmentFault,
    GatewayAccess,
    Profile,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
)
from environments.invoke import Action, InvokeRequest
from environments.reference import lay_out_reference
from environments.registry import Found

_QUEUE_SECONDS = 120.0


class CalibrationFailed(EnvironmentFault):
    """The starting or the reference solution got no valid score."""


@dataclass(frozen=True)
class Workshop:
    """One environment and profile, with what is needed to run it here."""

    found: Found
    profile_name: str
    home: Path
    passphrase: str
    lend: Callable[[], AbstractContextManager[GatewayAccess | None]] = nullcontext
    """Lends one scoring a way to a model, where the profile has a gateway."""

    @property
    def profile(self) -> Profile:
        return self.found.spec.profile(self.profile_name)

    def request(
        self,
        action: Action,
        root: Path | None = None,
        scratch: Path | None = None,
        gateway: GatewayAccess | None = None,
    ) -> InvokeRequest:
        return InvokeRequest(
            action=action,
            slug=self.found.spec.slug,
            profile=self.profile_name,
            folder=self.found.outside,
            home=self.home,
            root=root,
            scratch=scratch,
            seed=secrets.randbits(31),
            passphrase=self.passphrase,
            gateway=gateway,
        )


class Measured(NamedTuple):
    """Valid raw scores of one solution."""

    raws: tuple[float, ...]

    @property
    def middle(self) -> float:
        return statistics.median(self.raws)

    @property
    def spread(self) -> float | None:
        """Standard deviation; None from a single score."""
        return statistics.stdev(self.raws) if len(self.raws) > 1 else None


@dataclass(frozen=True)
class Finding:
    """How one solution's normalised score compares with what it should be."""

    name: str
    """`starter` or `reference`."""
    expected: float
    normalised: float | None
    score: ScoreReport
    tolerance: float

    @property
    def holds(self) -> bool:
        return self.normalised is not None and abs(self.normalised - self.expected) <= self.tolerance

    def line(self) -> str:
        if self.normalised is None:
            return f"{self.name}: no valid score ({self.score.status}): {self.score.message}"
        verdict = "as it should" if self.holds else "WRONG"
        return f"{self.name}: normalised {self.normalised:z.3f}, expected about {self.expected:g}: {verdict}"


@dataclass(frozen=True)
class EnvironmentCheck:
    """What `check_environment` found."""

    findings: tuple[Finding, ...]
    anchors: Anchors
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        return all(finding.holds for finding in self.findings)


def measure(
    workshop: Workshop, *, repeats: int, hardware: str, today: date, report: ReportProgress
) -> Anchors:
    """Score the starting and the reference solution `repeats` times each, in turn, and return the anchors.

    They alternate so that a machine that slows down slows both alike.

    Raises:
        CalibrationFailed: a score was not valid, or both solutions score the same.
    """
    starts: list[float] = []
    references: list[float] = []
    with _trees(workshop, report) as (start, reference):
        for number in range(repeats):
            for name, tree, raws in (("starting", start, starts), ("reference", reference, references)):
                stage = f"scoring the {name} solution, {number + 1} of {repeats}"
                report(Progress(stage=stage, fraction=(len(starts) + len(references)) / (2 * repeats)))
                raws.append(_valid_raw(workshop, tree, name))
    first, second = Measured(tuple(starts)), Measured(tuple(references))
    if not workshop.found.spec.direction.better(second.middle, first.middle):
        raise CalibrationFailed(
            f"{workshop.found.spec.slug} ({workshop.profile_name}): the reference scored {second.middle:g} and the "
            f"start {first.middle:g}, where {workshop.found.spec.direction} is better"
        )
    return Anchors(
        start=first.middle,
        reference=second.middle,
        hardware=hardware,
        source="measured",
        measured_on=today.isoformat(),
        repeats=repeats,
        start_spread=first.spread,
        reference_spread=second.spread,
    )


def check_environment(
    workshop: Workshop, *, hardware: str, report: ReportProgress, tolerance: float = 0.1
) -> EnvironmentCheck:
    """Score the untouched starter (about 0) and the sealed reference (about 1) against the profile's anchors.

    Anchors of this hardware are used where there are some, otherwise the first that were measured, which is noted.

    Raises:
        CalibrationFailed: the profile has no measured anchors at all.
    """
    measured = [a for a in workshop.profile.anchors if a.source == "measured"]
    anchors = workshop.profile.anchors_for(hardware) or next(iter(measured), None)
    if anchors is None:
        raise CalibrationFailed(
            f"{workshop.found.spec.slug} has no measured anchors for {workshop.profile_name}; "
            f"run: rebench-workbench env calibrate {workshop.found.spec.slug} --profile {workshop.profile_name}"
        )
    notes = (
        ()
        if anchors.hardware == hardware
        else (f"anchors of {anchors.hardware}, this machine is {hardware}",)
    )
    findings = []
    with _trees(workshop, report) as trees:
        for name, expected, tree in zip(("starter", "reference"), (0.0, 1.0), trees, strict=True):
            report(Progress(stage=f"scoring {name}", fraction=expected / 2))
            score = _score(workshop, tree)
            value = None if score.raw is None else _position(anchors, score.raw)
            findings.append(Finding(name, expected, value, score, tolerance))
    return EnvironmentCheck(tuple(findings), anchors, notes)


def _position(anchors: Anchors, raw: float) -> float:
    """Return the normalised score without its floor at 0, so that a start worse than its anchor shows."""
    return (raw - anchors.start) / (anchors.reference - anchors.start)


@contextlib.contextmanager
def _trees(workshop: Workshop, report: ReportProgress) -> Iterator[tuple[Path, Path]]:
    """Lay out the work trees of the untouched starter and of the reference solution, making the latter if need be."""
    assets.verify(assets.folders_for(workshop.found.spec, workshop.profile_name, workshop.home))
    sources = calls.call(workshop.request(Action.STARTER), lambda _progress: None)["starter"]
    with tempfile.TemporaryDirectory(prefix="rebench-calibrate-") as folder:
        start, reference = Path(folder, "start"), Path(folder, "reference")
        for tree in (start, reference):
            for name, source in sources.items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, tree / name)
        lay_out_reference(
            workshop.found, workshop.profile_name, reference, workshop.home, workshop.passphrase, report
        )
        yield start, reference


def _valid_raw(workshop: Workshop, tree: Path, name: str) -> float:
    score = _score(workshop, tree)
    if score.status is not ScoreStatus.VALID or score.raw is None:
        raise CalibrationFailed(
            f"the {name} solution of {workshop.found.spec.slug} ({workshop.profile_name}) got no valid score: "
            f"{score.status}: {score.message}"
        )
    return score.raw


def _score(workshop: Workshop, tree: Path) -> ScoreReport:
    with tempfile.TemporaryDirectory(prefix="rebench-calibrate-") as scratch, workshop.lend() as gateway:
        request = workshop.request(Action.SCORE, tree, Path(scratch), gateway)
        limit = workshop.profile.limits.score_seconds + _QUEUE_SECONDS
        return calls.score(request, lambda _progress: None, limit)
