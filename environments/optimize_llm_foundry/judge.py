"""Runs a submission and the untouched script on the same fresh rows and says whether they computed the same."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import Progress, ReportProgress, ScoreReport, ScoreStatus
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.comparison import Comparison, compare
from environments.optimize_llm_foundry.result import (
    ResultRefused,
    check_config,
    check_weights,
    read_weights,
)
from environments.optimize_llm_foundry.runs import HERE, Job, NotRan, Ran, Sandbox, run

TIED = {"lm_head.weight": "model.embed_tokens.weight", "transformer.lm_head.weight": "transformer.wte.weight"}
_LOAD_SECONDS = 300.0

RunStarter = Callable[[Path, Job, Sandbox, float, ReportProgress], Ran | NotRan]
"""(empty folder, job, sandbox, seconds, report) -> how the untouched script's run went."""


def run_starter(
    folder: Path, job: Job, sandbox: Sandbox, seconds: float, report: ReportProgress
) -> Ran | NotRan:
    """Run the untouched script."""
    script = folder / "script"
    script.mkdir()
    for name, source in lines.starter_files(sandbox.settings).items():
        shutil.copyfile(source, script / name)
    return run(script, folder, job, sandbox, seconds, report)


class MachineUnfit(Exception):
    """The untouched script itself failed, or its speed changed too much: nothing can be held against a submission."""


@dataclass
class Trial:
    """One scoring call: the submission against the untouched script."""

    source: Path
    """The submission's snapshot."""
    whole: Job
    quick: Job
    sandbox: Sandbox
    scratch: Path
    report: ReportProgress
    starter: RunStarter = run_starter
    _details: dict[str, Any] = field(default_factory=dict)

    def score(self) -> ScoreReport:
        """Return the verdict.

        Order: the untouched script's quick run, the submission's whole and quick run, the untouched script's whole and
        quick run. So the two whole runs are neighbours, and the two quick runs tell how steady the machine was.
        """
        try:
            return self._score()
        except MachineUnfit as error:
            return ScoreReport.rejected(ScoreStatus.INFRASTRUCTURE, str(error), **self._details)

    def check(self) -> tuple[str, ...]:
        """Return what is wrong with the submission on the quick run alone; nothing is timed."""
        before = self._reference("check", self.quick, 0.0)
        ran = self._submission("quick", self.quick, self._limit(before, whole=False))
        if isinstance(ran, NotRan):
            return (ran.message,)
        problem = self._problem(ran, self.quick) or self._compare(ran, before, self.quick).problem()
        problem = problem or self._unloadable(ran.result)
        return (problem,) if problem else ()

    def _score(self) -> ScoreReport:
        self._tell("the untouched script on a few rows", 0.0)
        before = self._reference("quick-before", self.quick, 0.0)
        limit = self._limit(before, whole=True)
        self._tell("your script", 0.15)
        ran = self._submission("whole", self.whole, limit)
        if isinstance(ran, NotRan):
            return self._not_ran(ran)
        if problem := self._problem(ran, self.whole):
            return self._invalid(problem)
        self._tell("your script with other options", 0.4)
        quick = self._submission("quick", self.quick, self._limit(before, whole=False))
        if isinstance(quick, NotRan):
            return self._not_ran(quick, prefix="with other options in finetune.yaml, ")
        problem = self._problem(quick, self.quick)
        compared = None if problem else self._compare(quick, before, self.quick)
        self._details["other_options"] = {
            **self.quick.options,
            **({"distance": compared.details()} if compared else {}),
        }
        if problem or (compared and (problem := compared.problem())):
            return self._invalid(f"with other options in finetune.yaml ({self._differing()}): {problem}")
        if problem := self._unloadable(ran.result):
            return self._invalid(problem)
        self._tell("the untouched script on the same rows", 0.5)
        reference = self._reference("whole", self.whole, limit)
        whole = self._compare(ran, reference, self.whole)
        self._details |= {
            "seconds": ran.seconds,
            "starter_seconds": reference.seconds,
            "speed_up": reference.seconds / ran.seconds,
            "distance": whole.details(),
            "limit_seconds": limit,
            "flags": self._flags(ran, whole),
            "confinement": msgspec.to_builtins(ran.confinement),
            "log": ran.log[-4000:],
        }
        if problem := whole.problem():
            return self._invalid(problem)
        self._tell("the untouched script on a few rows", 0.9)
        after = self._reference("quick-after", self.quick, limit)
        return self._verdict(ran, reference, whole, before, after)

    def _verdict(
        self, ran: Ran, reference: Ran, compared: Comparison, before: Ran, after: Ran
    ) -> ScoreReport:
        drift = max(before.seconds, after.seconds) / min(before.seconds, after.seconds)
        rerun = self._compare(after, before, self.quick)
        limit, ratio = self._details["limit_seconds"], self._details["speed_up"]
        self._details |= {
            "quick_starter_seconds": [before.seconds, after.seconds],
            "drift": drift,
            "starter_rerun_share": rerun.share,
        }
        if drift > self.sandbox.settings.most_drift:
            raise MachineUnfit(
                f"the machine was not steady: the untouched script's quick run took {before.seconds:.1f} s before and "
                f"{after.seconds:.1f} s after; score again when nothing else runs"
            )
        if rerun.problem() is not None:
            raise MachineUnfit(
                f"two runs of the untouched script differ by {rerun.share:.2%} ({100 * rerun.along.along:+.2g} % along the "
                "way): no reference can be had"
            )
        if ran.seconds > max(limit, 2 * reference.seconds):
            return self._not_ran(
                NotRan(ScoreStatus.TIMEOUT, f"{ran.seconds:.0f} s is too slow", ran.seconds, ran.log)
            )
        raw = math.log(ran.seconds)
        message = (
            f"{ran.seconds:.2f} s; the untouched script took {reference.seconds:.2f} s on the same rows ({ratio:.2f} times as "
            f"long); distance to its weights {compared.to_reference.frobenius_sum:.4g} of at most {compared.bound:.4g}, along its "
            f"way {100 * compared.along.along:+.2g} % of at most {100 * compared.along_bound:.2g} %; "
            f"score ln(seconds) = {raw:.4f}"
        )
        return ScoreReport.valid(raw, message, **self._details)

    def _compare(self, ran: Ran, reference: Ran, job: Job) -> Comparison:
        base, ours = read_weights(job.base), read_weights(reference.result)
        theirs = check_weights(read_weights(ran.result), ours, TIED)
        base = {name: base[name].to(tensor.dtype) for name, tensor in ours.items()}
        settings, whole = self.sandbox.settings, job is self.whole
        return compare(
            theirs, ours, base,
            bound_share=settings.bound_share if whole else settings.quick_bound_share,
            along_bound=settings.along_bound if whole else settings.quick_along_bound,
            floor_share=settings.floor_share,
        )  # fmt: skip

    def _problem(self, ran: Ran, job: Job) -> str | None:
        """Say what is wrong with the result's files; the base model has the names and shapes they must have."""
        try:
            check_config(ran.result, job.base)
            base = read_weights(job.base)
            wanted = {
                name: tensor for name, tensor in base.items() if name not in TIED or TIED[name] not in base
            }
            check_weights(read_weights(ran.result), wanted, TIED)
        except ResultRefused as error:
            return str(error)
        return None

    def _unloadable(self, result: Path) -> str | None:
        """Load the result with AutoModel in a worker and say what hinders."""
        from environments.worker import Failed, Mount, WorkerJob, run_untrusted

        job = WorkerJob(
            entry=HERE / "load_result.py",
            mounts={"result": Mount(result)},
            limits=self.sandbox.worker_limits(_LOAD_SECONDS),
            masks=self.sandbox.masks,
            hidden_packages=self.sandbox.hidden_packages,
        )
        outcome = run_untrusted(job, lambda progress: None)
        if isinstance(outcome, Failed):
            return f"AutoModel cannot load {lines.OUTPUT}/: {outcome.message}"
        for kind in ("missing", "mismatched"):
            if outcome.body.get(kind):
                return f"AutoModel loads {lines.OUTPUT}/ with {kind} weights: {', '.join(outcome.body[kind])}"
        return None

    def _reference(self, name: str, job: Job, seconds: float) -> Ran:
        folder = self.scratch / f"starter-{name}"
        folder.mkdir(parents=True)
        longest = max(seconds, 4 * self.sandbox.settings.limit_seconds)
        ran = self.starter(folder, job, self.sandbox, longest, lambda progress: None)
        if isinstance(ran, NotRan):
            self._details["log"] = ran.log[-4000:]
            raise MachineUnfit(f"the untouched script failed on this machine: {ran.message}")
        return ran

    def _submission(self, name: str, job: Job, seconds: float) -> Ran | NotRan:
        folder = self.scratch / f"submission-{name}"
        folder.mkdir(parents=True)
        return run(self.source, folder, job, self.sandbox, seconds, lambda progress: None)

    def _limit(self, quick: Ran, *, whole: bool) -> float:
        """Return twice what the untouched script takes, going by its quick run of a moment ago."""
        settings = self.sandbox.settings
        if whole:
            return max(settings.limit_seconds, 2 * quick.seconds / settings.quick_share)
        return max(settings.limit_seconds * settings.quick_share, 2 * quick.seconds)

    def _flags(self, ran: Ran, compared: Comparison) -> list[str]:
        found = []
        if ran.left_running:
            found.append(f"processes were left running: {', '.join(ran.left_running)}")
        if compared.nearness > 0.5:
            found.append(
                "the distance, or the part of it along the way, is more than half of what is allowed: "
                "look for changed hyper-parameters"
            )
        return found

    def _differing(self) -> str:
        usual = self.whole.options
        return ", ".join(
            f"{k}={v}"
            for k, v in self.quick.options.items()
            if usual.get(k) != v and k not in ("model", "data", "work")
        )

    def _tell(self, stage: str, fraction: float) -> None:
        self.report(Progress(stage=stage, fraction=fraction))

    def _invalid(self, problem: str) -> ScoreReport:
        return ScoreReport.rejected(ScoreStatus.INVALID, problem, **self._details)

    def _not_ran(self, reason: NotRan, prefix: str = "") -> ScoreReport:
        confinement = (
            {} if reason.confinement is None else {"confinement": msgspec.to_builtins(reason.confinement)}
        )
        return ScoreReport.rejected(
            reason.status,
            prefix + reason.message,
            **{**self._details, "seconds": reason.seconds, "log": reason.log[-4000:], **confinement},
        )
