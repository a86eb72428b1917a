"""An environment that answers at once: for tests of everything above it."""

from __future__ import annotations

import time
from pathlib import Path

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

HERE = Path(__file__).parent


class TinySum:
    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        report(Progress("writing one file", 0.5))
        (request.assets.public / "hint.txt").write_text("larger is better\n")
        (request.assets.protected / "key.txt").write_text("secret\n")

    def starter(self, request: PrepareRequest) -> dict[str, Path]:
        return {"answer.txt": HERE / "starter" / "answer.txt"}

    def check(self, submission: Submission) -> CheckReport:
        try:
            float((submission.root / "answer.txt").read_text())
        except (OSError, ValueError) as error:
            return CheckReport((Problem(str(error), "answer.txt:1", "write one number"),))
        return CheckReport()

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        text = (submission.root / "answer.txt").read_text().strip()
        report(Progress("reading the answer", 0.25))
        if text.startswith("slow"):
            time.sleep(float(text.split()[1]))
            text = "2"
        if text == "break":
            raise RuntimeError("the scorer broke, as asked")
        try:
            return ScoreReport.valid(float(text), f"read {text}", digits=len(text))
        except ValueError:
            return ScoreReport.rejected(ScoreStatus.INVALID, f"{text!r} is no number")


environment = TinySum()
