"""The environment: prepares the tokens, hands out the starter, checks and scores what comes back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import (
    CheckReport,
    PrepareRequest,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.kit.log_loss import Loss, bits_per_byte, log_loss_report, signs_of_seen_text
from environments.kit.starter import all_present
from environments.kit.token_corpus import read_corpus_record
from environments.restricted_mlm.corpus import TASK, prepare_corpus
from environments.restricted_mlm.settings import KEYS, MlmSettings, decode_settings

if TYPE_CHECKING:
    from environments.restricted_mlm.capture_job import Captured, NotCaptured
    from environments.restricted_mlm.rules import Inspection

STARTER = Path(__file__).parent / "starter"


class RestrictedMlm:
    """Restricted-architecture masked language modelling."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Make the token files and leave the mask seed beside the protected ones."""
        settings = decode_settings(request.profile.settings)
        keys = KEYS.open(request.passphrase)
        prepare_corpus(request, settings, keys, report)
        KEYS.leave(keys, request.assets.protected)
        if not self._shipped_weights(request.profile_name).is_file():
            from environments.restricted_mlm.first_weights import train_first_weights

            train_first_weights(STARTER, request.assets.public, settings, report)

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return model, training script, weights, sizes and data."""
        public = request.assets.public
        weights = self._shipped_weights(request.profile_name)
        files = {name: STARTER / name for name in ("model.py", "train.py")}
        files["model.safetensors"] = weights if weights.is_file() else public / "model.safetensors"
        files[TASK] = public / TASK
        for name in ("train.npy", "validation.npy", "tokenizer.json"):
            files[f"data/{name}"] = public / name
        return all_present(files, "restricted_mlm", request)

    def check(self, submission: Submission) -> CheckReport:
        """Capture the model and walk its graph; computes no loss."""
        from environments.restricted_mlm.capture_job import NotCaptured

        settings = decode_settings(submission.profile.settings)
        seconds = submission.profile.limits.check_seconds
        captured = _capture(submission, settings, seconds, lambda progress: None)
        if isinstance(captured, NotCaptured):
            return CheckReport(problems=(captured.problem,))
        from environments.restricted_mlm.rules import inspect_graph

        found = inspect_graph(captured.graph, captured.weights, settings)
        return CheckReport(problems=found.problems, notes=_notes(found, settings))

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Capture, check and evaluate: what is evaluated is the graph that was checked."""
        from environments.restricted_mlm.capture_job import NotCaptured, describe

        settings = decode_settings(submission.profile.settings)
        deadline = time.monotonic() + submission.profile.limits.score_seconds
        report(Progress(stage="capturing the model", fraction=0.0))
        captured = _capture(submission, settings, settings.capture_seconds, report)
        if isinstance(captured, NotCaptured):
            return captured.report()
        from environments.restricted_mlm.rules import inspect_graph

        report(Progress(stage="checking the graph", fraction=0.1))
        found = inspect_graph(captured.graph, captured.weights, settings)
        if found.problems:
            more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
            return ScoreReport.rejected(
                ScoreStatus.INVALID,
                describe(found.problems[0]) + more,
                problems=[describe(problem) for problem in found.problems],
            )
        from environments.restricted_mlm.losses import measure_losses

        losses = measure_losses(captured, submission, settings, deadline, found.gigaflops_per_row, report)
        if isinstance(losses, ScoreReport):
            return losses
        details = {
            "parameters": found.parameters,
            "gigaflops_per_row": found.gigaflops_per_row,
            "operations": len(captured.graph.nodes),
            "capture_seconds": captured.seconds,
            "confinement": dict(captured.confinement),
        }
        return _report(losses, submission, settings, details)

    @staticmethod
    def _shipped_weights(profile_name: str) -> Path:
        return STARTER / f"model-{profile_name}.safetensors"


def _notes(found: Inspection, settings: MlmSettings) -> tuple[str, ...]:
    if found.problems:
        return ()
    return (
        f"{found.parameters:,} numbers in weights and constants (at most {settings.largest_parameters:,})",
        f"{found.gigaflops_per_row:.3f} GFLOP a row (at most {settings.largest_gigaflops})",
    )


def _capture(
    submission: Submission, settings: MlmSettings, seconds: float, report: ReportProgress
) -> Captured | NotCaptured:
    """Capture the model in the worker; meanwhile this process loads what it needs to judge it."""
    from environments.restricted_mlm.capture_job import capture_submission

    with ThreadPoolExecutor(1) as pool:
        pool.submit(_rehearse, settings)
        return capture_submission(submission, settings, seconds, report)


def _rehearse(settings: MlmSettings) -> None:
    """Check a graph of two operations, for what PyTorch imports on its first way through.

    Whatever fails here fails again where it is reported.
    """
    import torch

    from environments.restricted_mlm import losses, rules  # noqa: F401
    from environments.restricted_mlm.device import ready_device
    from environments.restricted_mlm.graph import FORMAT, INPUT, Graph, Node, Ref

    table = torch.zeros(settings.vocabulary, 8)
    nodes = [
        Node("x", "aten.embedding.default", [Ref("w"), Ref(INPUT)]),
        Node("y", "aten.linear.default", [Ref("x"), Ref("w")]),
    ]
    rules.inspect_graph(Graph(FORMAT, {"w": "w"}, nodes, "y"), {"w": table}, settings)
    torch.zeros(1, device=ready_device(settings.device, "rehearsal"))


def _report(
    losses: Mapping[str, Loss], submission: Submission, settings: MlmSettings, details: dict[str, Any]
) -> ScoreReport:
    scoring = losses["scoring"]
    density = read_corpus_record(submission.assets).text_bytes_per_token["scoring"]
    details |= {
        "loss": scoring.mean,
        "standard_error": scoring.standard_error,
        "tokens": scoring.tokens,
        "seconds": scoring.seconds,
        "bits_per_byte": bits_per_byte(scoring.mean, density),
        "control_loss": losses["control"].mean,
        "control_standard_error": losses["control"].standard_error,
        "train_loss": losses["train"].mean,
        "train_standard_error": losses["train"].standard_error,
        "flags": signs_of_seen_text(losses),
    }
    told = f"masked-token loss {scoring.mean:.4f} (standard error {scoring.standard_error:.4f}, {scoring.tokens:,} tokens)"
    return log_loss_report(scoring, settings.log_constant, told, details)


environment = RestrictedMlm()
