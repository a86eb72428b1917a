"""A small whole environment: prepares, checks and scores one function in well under a second."""

from __future__ import annotations

import ast
import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import (
    CheckReport,
    Model,
    ModelRefused,
    PrepareRequest,
    Problem,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.sealing import open_sealed
from environments.worker import (
    Answered,
    ArrayRefused,
    Failed,
    Mount,
    WorkerJob,
    WorkerLimits,
    run_untrusted,
    unpack_array,
)

HERE = Path(__file__).parent


class Tiny:
    """y = 3x - 1 with a little noise."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        seed = json.loads(open_sealed(HERE / "protected" / "keys.sealed", request.passphrase)["keys.json"])[
            "seed"
        ]
        rows = int(request.profile.settings["rows"])
        report(Progress(stage="drawing numbers", fraction=0.0))
        _write(request.assets.public / "train.json", _draw(random.Random(1), rows))
        _write(request.assets.protected / "test.json", _draw(random.Random(seed), rows))
        report(Progress(stage="drawing numbers", fraction=1.0))

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        return {
            "solution.py": HERE / "starter" / "solution.py",
            "train.json": request.assets.public / "train.json",
        }

    def check(self, submission: Submission) -> CheckReport:
        path = submission.root / "solution.py"
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return CheckReport(problems=(Problem(what="solution.py is missing"),))
        except (OSError, SyntaxError, ValueError) as error:
            return CheckReport(problems=(Problem(what=f"solution.py cannot be read: {error}"),))
        if not any(isinstance(node, ast.FunctionDef) and node.name == "predict" for node in tree.body):
            hint = "define predict(xs) at the top level"
            return CheckReport(problems=(Problem(what="solution.py defines no predict", hint=hint),))
        return CheckReport()

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        checked = self.check(submission)
        if not checked.accepted:
            return ScoreReport.rejected(ScoreStatus.INVALID, checked.problems[0].what)
        held_out = json.loads((submission.assets.protected / "test.json").read_text())
        job = WorkerJob(
            entry=HERE / "ask.py",
            mounts={"root": Mount(submission.root), "public": Mount(submission.assets.public)},
            limits=WorkerLimits.of(submission.profile.limits, answer_mb=1.0, file_gb=0.0625),
            body={"xs": held_out["x"]},
            masks=(submission.assets.protected,),
        )
        return _judge(run_untrusted(job, report), held_out["y"], submission.seed)

    def model(self, request: PrepareRequest) -> Model:
        return Echo(int(request.profile.settings["rows"]))


class Echo:
    """A model that says what was said to it, and how many rows its environment has; it dies when told to."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    async def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        said = request["messages"][-1]["content"]
        if said == "refuse":
            raise ModelRefused("not that")
        if said == "die":
            os._exit(7)
        content = f"{self._rows} {said}"
        return {
            "model": request["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": len(said), "completion_tokens": len(content)},
        }


def _judge(outcome: Answered | Failed, truth: list[float], seed: int) -> ScoreReport:
    details = {"confinement": msgspec.to_builtins(outcome.confinement), "log": outcome.log, "seed": seed}
    if isinstance(outcome, Failed):
        return ScoreReport.rejected(outcome.status, outcome.message, **details)
    try:
        said = unpack_array(
            outcome.body.get("predictions", {}),
            outcome.blobs.get("predictions", b""),
            dtype="float64",
            shape=(len(truth),),
            name="predictions",
        )
    except ArrayRefused as refused:
        return ScoreReport.rejected(ScoreStatus.INVALID, str(refused), **details)
    raw = float(((said - truth) ** 2).mean())
    return ScoreReport.valid(raw, f"mean squared error {raw:.4g}", **details)


def _draw(chance: random.Random, rows: int) -> dict[str, list[float]]:
    xs = [chance.uniform(0.0, 10.0) for _ in range(rows)]
    return {"x": xs, "y": [3.0 * x - 1.0 + chance.gauss(0.0, 0.1) for x in xs]}


def _write(path: Path, content: object) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(content))
    partial.replace(path)


environment = Tiny()
