"""The losses of a captured model on the protected parts and on training text, or why there are none."""

from __future__ import annotations

import torch

from environments.contract import (
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.kit.log_loss import Loss
from environments.kit.tokens import read_tokens
from environments.restricted_mlm.capture_job import Captured
from environments.restricted_mlm.device import DeviceFailed, is_device_failure, judge, ready_device
from environments.restricted_mlm.evaluate import (
    EvaluationRefused,
    EvaluationTimedOut,
    draw_rows,
    masked_loss,
    refuse_dependence,
)
from environments.restricted_mlm.interpret import NodeFailed
from environments.restricted_mlm.settings import KEYS, MlmSettings


def measure_losses(
    captured: Captured,
    submission: Submission,
    settings: MlmSettings,
    deadline: float,
    gigaflops_per_row: float,
    report: ReportProgress,
) -> dict[str, Loss] | ScoreReport:
    """Evaluate a graph that was found to keep to the rules, or say why not and whose fault that is.

    Raises:
        AssetsMissing: the keys are gone.
        ProfileUnavailable: there is no card.
    """
    device = ready_device(settings.device, submission.profile_name)
    try:
        return _losses(captured, submission, settings, device, deadline, report)
    except NodeFailed as error:
        where = f"{error.node.where}: " if error.node.where else ""
        return ScoreReport.rejected(ScoreStatus.INVALID, where + error.what)
    except EvaluationRefused as error:
        return ScoreReport.rejected(ScoreStatus.INVALID, str(error))
    except EvaluationTimedOut:
        return ScoreReport.rejected(
            ScoreStatus.TIMEOUT,
            f"scoring took longer than {submission.profile.limits.score_seconds:.0f} s at "
            f"{gigaflops_per_row:.2f} GFLOP a row; use a smaller model",
        )
    except Exception as error:
        if not isinstance(error, DeviceFailed) and not is_device_failure(error):
            raise
        failed = error if isinstance(error, DeviceFailed) else DeviceFailed(error)
        verdict = judge(failed, device, settings.batch)
        return ScoreReport.rejected(
            verdict.status,
            verdict.message,
            failure=f"{type(failed.cause).__name__}: {failed.cause}"[:2000],
            at=failed.at,
        )


def _losses(
    captured: Captured,
    submission: Submission,
    settings: MlmSettings,
    device: torch.device,
    deadline: float,
    report: ReportProgress,
) -> dict[str, Loss]:
    """Return the losses on the scoring part, the control part and a sample of the training text."""
    assets = submission.assets
    keys = KEYS.read(assets.protected)
    placed = {name: tensor.to(device) for name, tensor in captured.weights.items()}
    parts = {
        "scoring": (assets.protected / "scoring.npy", settings.scoring_rows),
        "control": (assets.protected / "control.npy", settings.control_rows),
        "train": (assets.public / "train.npy", settings.control_rows),
    }
    total = settings.scoring_rows + 2 * settings.control_rows
    workers = submission.profile.needs.cpus if device.type == "cpu" else 1
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
            report(Progress(stage="computing some rows in other ways", fraction=0.15))
            refuse_dependence(
                captured.graph,
                placed,
                rows,
                settings.batch,
                seed=keys.mask_seed,
                workers=workers,
                deadline=deadline,
            )

        def tell(fraction: float, done: int = done, count: int = count) -> None:
            report(Progress(stage="evaluating", fraction=0.2 + 0.8 * (done + fraction * count) / total))

        losses[name] = masked_loss(
            captured.graph, placed, rows, settings.batch, workers=workers, deadline=deadline, report=tell
        )
        done += count
    return losses
