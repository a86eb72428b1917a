"""The environment: prepares the tokens, hands out the starter, checks and scores what comes back."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import (
    AssetsMissing,
    CheckReport,
    PrepareRequest,
    ProfileUnavailable,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.restricted_mlm.corpus import prepare_corpus, read_manifest
from environments.restricted_mlm.settings import Keys, MlmSettings, decode_settings, open_keys

if TYPE_CHECKING:
    from torch import Tensor

    from environments.restricted_mlm.evaluate import Loss
    from environments.restricted_mlm.graph import Graph
    from environments.restricted_mlm.rules import Inspection

STARTER = Path(__file__).parent / "starter"
KEYS_FILE = "keys.json"
SUSPICIOUS_ERRORS = 4.0
"""Standard errors beyond which a difference between protected parts is flagged."""


class RestrictedMlm:
    """Restricted-architecture masked language modelling."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Make the token files and leave the mask seed beside the protected ones."""
        import msgspec

        from environments.kit.tokens import write_whole

        settings = decode_settings(request.profile.settings)
        keys = open_keys(request.passphrase)
        prepare_corpus(request, settings, keys, report)
        write_whole(request.assets.protected / KEYS_FILE, msgspec.json.encode(keys))
        if not self._shipped_weights(request.profile_name).is_file():
            from environments.restricted_mlm.first_weights import train_first_weights

            train_first_weights(STARTER, request.assets.public, settings, report)

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return model, training script, weights, sizes and data."""
        public = request.assets.public
        weights = self._shipped_weights(request.profile_name)
        files = {name: STARTER / name for name in ("model.py", "train.py")}
        files["model.safetensors"] = weights if weights.is_file() else public / "model.safetensors"
        files["task.json"] = public / "task.json"
        for name in ("train.npy", "validation.npy", "tokenizer.json"):
            files[f"data/{name}"] = public / name
        absent = [str(path) for path in files.values() if not path.is_file()]
        if absent:
            raise AssetsMissing(
                f"{', '.join(absent)} missing; run `rebench-workbench prepare restricted_mlm`"
            )
        return files

    def check(self, submission: Submission) -> CheckReport:
        """Capture the model and walk its graph; computes no loss."""
        from environments.restricted_mlm.capture_job import NotCaptured, capture_submission
        from environments.restricted_mlm.rules import inspect_graph

        settings = decode_settings(submission.profile.settings)
        seconds = submission.profile.limits.check_seconds
        captured = capture_submission(submission, settings, seconds, lambda progress: None)
        if isinstance(captured, NotCaptured):
            return CheckReport(problems=(captured.problem,))
        found = inspect_graph(captured.graph, captured.weights, settings)
        return CheckReport(problems=found.problems, notes=_notes(found, settings))

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Capture, check and evaluate: what is evaluated is the graph that was checked."""
        from environments.restricted_mlm.capture_job import NotCaptured, capture_submission, describe
        from environments.restricted_mlm.evaluate import EvaluationRefused, EvaluationTimedOut
        from environments.restricted_mlm.interpret import NodeFailed
        from environments.restricted_mlm.rules import inspect_graph

        settings = decode_settings(submission.profile.settings)
        deadline = time.monotonic() + submission.profile.limits.score_seconds
        report(Progress(stage="capturing the model", fraction=0.0))
        captured = capture_submission(submission, settings, settings.capture_seconds, report)
        if isinstance(captured, NotCaptured):
            return captured.report()
        report(Progress(stage="checking the graph", fraction=0.1))
        found = inspect_graph(captured.graph, captured.weights, settings)
        if found.problems:
            more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
            return ScoreReport.rejected(
                ScoreStatus.INVALID,
                describe(found.problems[0]) + more,
                problems=[describe(problem) for problem in found.problems],
            )
        try:
            losses = _losses(captured.graph, captured.weights, submission, settings, deadline, report)
        except NodeFailed as error:
            where = f"{error.node.where}: " if error.node.where else ""
            return ScoreReport.rejected(ScoreStatus.INVALID, where + error.what)
        except EvaluationRefused as error:
            return ScoreReport.rejected(ScoreStatus.INVALID, str(error))
        except EvaluationTimedOut:
            return ScoreReport.rejected(
                ScoreStatus.TIMEOUT,
                f"scoring took longer than {submission.profile.limits.score_seconds:.0f} s at "
                f"{found.gigaflops_per_row:.2f} GFLOP a row; use a smaller model",
            )
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


def _losses(
    graph: Graph,
    weights: Mapping[str, Tensor],
    submission: Submission,
    settings: MlmSettings,
    deadline: float,
    report: ReportProgress,
) -> dict[str, Loss]:
    """Return the losses on the scoring part, the control part and a sample of the training text."""
    import msgspec
    import torch

    from environments.kit.tokens import read_tokens
    from environments.restricted_mlm.evaluate import draw_rows, masked_loss, refuse_dependence

    assets = submission.assets
    try:
        keys = msgspec.json.decode((assets.protected / KEYS_FILE).read_bytes(), type=Keys)
    except (OSError, msgspec.MsgspecError) as error:
        raise AssetsMissing(
            f"{assets.protected / KEYS_FILE} cannot be read ({error}); run prepare again"
        ) from error
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ProfileUnavailable(
            f"the profile {submission.profile_name} evaluates on a GPU, and PyTorch finds none here"
        )
    placed = {name: tensor.to(settings.device) for name, tensor in weights.items()}
    parts = {
        "scoring": (assets.protected / "scoring.npy", settings.scoring_rows),
        "control": (assets.protected / "control.npy", settings.control_rows),
        "train": (assets.public / "train.npy", settings.control_rows),
    }
    total = settings.scoring_rows + 2 * settings.control_rows
    workers = submission.profile.needs.cpus if settings.device == "cpu" else 1
    done, losses = 0, {}
    for name, (path, count) in parts.items():
        rows = draw_rows(
            read_tokens(path),
            count,
            settings.length,
            mask_token=settings.mask_token,
            mask_share=settings.mask_share,
            seed=keys.mask_seed,
        )
        if name == "scoring":
            refuse_dependence(graph, placed, rows, settings.batch, seed=keys.mask_seed, deadline=deadline)

        def tell(fraction: float, done: int = done, count: int = count) -> None:
            report(Progress(stage="evaluating", fraction=0.2 + 0.8 * (done + fraction * count) / total))

        losses[name] = masked_loss(
            graph, placed, rows, settings.batch, workers=workers, deadline=deadline, report=tell
        )
        done += count
    return losses


def _report(
    losses: Mapping[str, Loss], submission: Submission, settings: MlmSettings, details: dict[str, Any]
) -> ScoreReport:
    scoring = losses["scoring"]
    density = read_manifest(submission.assets.protected).text_bytes_per_token["scoring.npy"]
    details |= {
        "loss": scoring.mean,
        "standard_error": scoring.standard_error,
        "tokens": scoring.tokens,
        "seconds": scoring.seconds,
        "bits_per_byte": scoring.mean / math.log(2) / density,
        "control_loss": losses["control"].mean,
        "control_standard_error": losses["control"].standard_error,
        "train_loss": losses["train"].mean,
        "train_standard_error": losses["train"].standard_error,
        "flags": flags(losses),
    }
    if scoring.mean <= settings.log_constant:
        return ScoreReport.rejected(
            ScoreStatus.INVALID,
            f"the loss is {scoring.mean:.4f}, at or below the constant {settings.log_constant} of the score",
            **details,
        )
    raw = math.log(scoring.mean - settings.log_constant)
    message = (
        f"masked-token loss {scoring.mean:.4f} (standard error {scoring.standard_error:.4f}, {scoring.tokens:,} tokens); "
        f"score ln(loss - {settings.log_constant}) = {raw:.4f}"
    )
    return ScoreReport.valid(raw, message, **details)


def flags(losses: Mapping[str, Loss]) -> list[str]:
    """Return what a proctor should look at: signs that held-out text was trained on."""
    scoring, control, train = losses["scoring"], losses["control"], losses["train"]
    found = []
    for name, other, says in (
        ("control", control, "the scoring text may have been seen in training"),
        (
            "train",
            train,
            "held-out text is easier than training text, which memorisation of all of it would explain",
        ),
    ):
        error = math.hypot(scoring.standard_error, other.standard_error)
        if other.mean - scoring.mean > SUSPICIOUS_ERRORS * error:
            found.append(
                f"loss on {name} text is {other.mean - scoring.mean:.3f} higher than on scoring text: {says}"
            )
    return found


environment = RestrictedMlm()
