"""The environment: prepares the base model, hands out the script, checks and times what it has become."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from environments.contract import (
    CheckReport,
    PrepareRequest,
    Problem,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.kit.sources import Document, load_documents
from environments.kit.starter import all_present
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.base_model import fetch_base_model, make_base_model
from environments.optimize_llm_foundry.rows import divide, draw_rows, odd_rows, to_jsonl
from environments.optimize_llm_foundry.settings import (
    KEYS,
    Keys,
    Rows,
    decode_settings,
)
from environments.worker.output import printable

if TYPE_CHECKING:
    from environments.optimize_llm_foundry.judge import RunStarter, Trial

EXAMPLE = "example.jsonl"
_EXAMPLE_SEED = 0
_LONGEST_PATH = 800
"""Bytes below the work tree; copies lie under longer paths, and each folder on the way costs a call on the stack."""


@dataclass(frozen=True)
class OptimizeLlmFoundry:
    """A fine-tuning script, timed."""

    run_starter: RunStarter | None = None
    """Stands in for runs of the untouched script (for tests); None means: run it."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Make or fetch the base model, write example rows, and leave the sealed seeds."""
        settings = decode_settings(request.profile.settings)
        keys = KEYS.open(request.passphrase)
        request.assets.protected.mkdir(parents=True, exist_ok=True)
        base = request.assets.public / lines.MODEL
        report(Progress(stage="making the base model", fraction=0.1))
        if settings.model is not None:
            make_base_model(base, settings.model)
        else:
            fetch_base_model(base, settings.hub_model, settings.hub_revision, report)
        report(Progress(stage="drawing example rows", fraction=0.8))
        examples, _ = divide(_documents(), keys.documents_seed)
        (request.assets.public / EXAMPLE).write_bytes(
            to_jsonl(draw_rows(examples, settings.rows, _EXAMPLE_SEED))
        )
        KEYS.leave(keys, request.assets.protected)
        report(Progress(stage="prepared", fraction=1.0))

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return the script, its config file, the base model and example rows."""
        settings = decode_settings(request.profile.settings)
        files = lines.starter_files(settings)
        base = request.assets.public / lines.MODEL
        files |= {f"{lines.MODEL}/{path.name}": path for path in sorted(base.glob("*")) if path.is_file()}
        files[lines.DATA] = request.assets.public / EXAMPLE
        if not any(base.glob("*.safetensors")):
            files[f"{lines.MODEL}/model.safetensors"] = base / "model.safetensors"
        return all_present(files, "optimize_llm_foundry", request)

    def check(self, submission: Submission) -> CheckReport:
        """Run the script on a few rows with other options and compare with the untouched one; times nothing."""
        if problem := _missing(submission.root):
            return CheckReport(problems=(problem,))
        found = self._trial(submission, lambda progress: None, purpose="check").check()
        if found:
            return CheckReport(problems=tuple(Problem(what=what) for what in found))
        return CheckReport(
            notes=("on a few rows with other options the weights are those of the untouched script",)
        )

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Time the script on fresh rows; the untouched one runs on the same rows in the same call."""
        if problem := _missing(submission.root):
            return ScoreReport.rejected(ScoreStatus.INVALID, f"{problem.what}; {problem.hint}")
        return self._trial(submission, report, purpose="score").score()

    def _trial(self, submission: Submission, report: ReportProgress, purpose: str) -> Trial:
        from environments.optimize_llm_foundry.judge import Trial, run_starter
        from environments.optimize_llm_foundry.runs import Job, Sandbox

        settings = decode_settings(submission.profile.settings)
        keys = KEYS.read(submission.assets.protected)
        _, documents = divide(_documents(), keys.documents_seed)
        base = submission.assets.public / lines.MODEL
        seed = _seeds(keys, submission.seed, purpose)
        whole = lines.whole_run(settings, seed["order"])
        quick = lines.quick_run(settings, seed["options"])
        quick_rows = _rows(documents, settings.quick_rows, seed["quick-rows"], odd_seed=seed["odd-rows"])
        return Trial(
            source=submission.root,
            whole=Job(whole, _rows(documents, settings.rows, seed["rows"]), base),
            quick=Job(quick, quick_rows, base),
            sandbox=Sandbox(
                submission.profile.limits,
                settings,
                masks=(submission.assets.protected,),
                hidden_packages=submission.profile.hidden_packages,
                disk_gb=submission.profile.needs.disk_gb,
            ),
            scratch=submission.scratch,
            report=report,
            starter=self.run_starter or run_starter,
        )


def _seeds(keys: Keys, call: int, purpose: str) -> dict[str, int]:
    names = ("order", "options", "rows", "quick-rows", "odd-rows")
    return {name: keys.seed_for(call, f"{purpose}/{name}") for name in names}


def _rows(documents: Sequence[Document], rows: Rows, seed: int, odd_seed: int | None = None) -> bytes:
    drawn = draw_rows(documents, rows, seed)
    return to_jsonl(drawn if odd_seed is None else [*drawn, *odd_rows(odd_seed)])


def _documents() -> list[Document]:
    return load_documents("sotu")


def _missing(root: Path) -> Problem | None:
    from environments.optimize_llm_foundry.runs import SCRIPT

    script = root / SCRIPT
    if not script.is_file() or script.is_symlink():
        return Problem(
            what=f"{SCRIPT} is missing", hint=f"the scorer runs `bash {SCRIPT}` in a copy of your folder"
        )
    with script.open("rb") as file:
        if file.readline(_LONGEST_PATH).endswith(b"\r\n"):
            return Problem(
                what=f"the lines of {SCRIPT} end as on Windows, and bash takes the extra character for part of its commands",
                hint=f"`sed -i 's/\\r$//' {SCRIPT}`",
            )
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            place = os.path.join(folder, name)[len(str(root)) + 1 :]  # noqa: PTH118  (a work tree holds many)
            if len(os.fsencode(place)) > _LONGEST_PATH:
                return Problem(
                    what=f"the path {printable(place, 60)}... has more than {_LONGEST_PATH} bytes",
                    hint="it cannot be copied safely: remove it, or give its folders shorter names",
                )
    return None


environment = OptimizeLlmFoundry()
