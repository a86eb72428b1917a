"""Sends a submission through the worker and brings back a graph and weights that have been decoded, not believed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.contract import Problem, ReportProgress, ScoreReport, ScoreStatus, Submission
from environments.restricted_mlm.graph import Graph, decode_graph
from environments.restricted_mlm.settings import MlmSettings
from environments.worker import Answered, Failed, Mount, WorkerJob, WorkerLimits, run_untrusted

if TYPE_CHECKING:
    from torch import Tensor

_HERE = Path(__file__).parent
_BYTES_A_NUMBER = 8
_WANTS_A_GPU = re.compile(r"CUDA|NVIDIA|torch\.cuda|map_location", re.IGNORECASE)
_NO_GPU = (
    "the model is captured without a GPU: load weights onto the CPU (`map_location='cpu'`) and leave out `.cuda()`; "
    "the scorer places them itself"
)


@dataclass(frozen=True)
class Captured:
    """A model as data."""

    graph: Graph
    weights: dict[str, Tensor]
    """Graph name -> tensor, every number finite."""
    seconds: float
    confinement: Mapping[str, Any]


@dataclass(frozen=True)
class NotCaptured:
    """Why there is no model; `status` says whose fault."""

    problem: Problem
    status: ScoreStatus
    log: str = ""

    def report(self) -> ScoreReport:
        return ScoreReport.rejected(self.status, describe(self.problem), log=self.log)


def describe(problem: Problem) -> str:
    """Return a problem as one sentence for the participant."""
    where = f"{problem.where}: " if problem.where else ""
    hint = f". {problem.hint[0].upper()}{problem.hint[1:]}" if problem.hint else ""
    return f"{where}{problem.what}{hint}"


def capture_submission(
    submission: Submission, settings: MlmSettings, seconds: float, report: ReportProgress
) -> Captured | NotCaptured:
    """Capture the model of `submission` in a worker of its own.

    Raises:
        WorkerUnavailable: the worker could not start.
    """
    if not (submission.root / "model.py").is_file():
        return NotCaptured(
            Problem(what="model.py is missing", where="model.py", hint="it must define get_trained_model()"),
            ScoreStatus.INVALID,
        )
    job = WorkerJob(
        entry=_HERE / "capture.py",
        modules=(_HERE / "graph.py",),
        mounts={"root": Mount(submission.root)},
        limits=WorkerLimits.of(
            submission.profile.limits,
            seconds=seconds,
            threads=submission.profile.needs.cpus,
            answer_mb=settings.largest_parameters * _BYTES_A_NUMBER / 1e6 + 64,
        ),
        body={"vocabulary": settings.vocabulary, "length": settings.length},
        hidden_packages=submission.profile.hidden_packages,
    )
    match run_untrusted(job, report):
        case Failed() as failed:
            hint = _NO_GPU if _WANTS_A_GPU.search(failed.message) else None
            problem = Problem(what=failed.message, where=failed.where, hint=hint)
            status = ScoreStatus.INVALID if failed.where else failed.status
            return NotCaptured(problem, status, failed.log)
        case Answered() as answered:
            return _believe_nothing(answered)


def _believe_nothing(answered: Answered) -> Captured | NotCaptured:
    problem = answered.body.get("problem")
    if problem is not None:
        return NotCaptured(_decode_problem(problem), ScoreStatus.INVALID, answered.log)
    try:
        graph = decode_graph(answered.blobs["graph"])
        weights = _decode_weights(graph, answered.blobs["weights"])
    except KeyError as error:
        return _refused(f"the worker's answer lacks {str(error)[:300]}", answered)
    except Exception as error:  # noqa: BLE001  (bytes of the participant's making: whatever they break is theirs)
        return _refused(f"the captured model does not decode: {str(error)[:300]}", answered)
    import msgspec

    return Captured(graph, weights, answered.seconds, msgspec.to_builtins(answered.confinement))


def _refused(what: str, answered: Answered) -> NotCaptured:
    return NotCaptured(Problem(what=what), ScoreStatus.INVALID, answered.log)


def _decode_problem(problem: Any) -> Problem:
    """Take over the worker's words as text, whatever they are."""
    fields = problem if isinstance(problem, dict) else {"what": str(problem)}
    texts = {key: str(fields[key])[:1000] for key in ("what", "where", "hint") if fields.get(key) is not None}
    return Problem(
        what=texts.get("what", "the model could not be captured"),
        where=texts.get("where"),
        hint=texts.get("hint"),
    )


def _decode_weights(graph: Graph, content: bytes) -> dict[str, Tensor]:
    """Return graph name -> tensor from safetensors bytes.

    Raises:
        ValueError: not safetensors, a tensor is missing, or holds NaN or infinity.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        stored = load(content)
    except SafetensorError as error:
        raise ValueError(f"the weights are no safetensors: {error}") from error
    missing = sorted(set(graph.weights.values()) - set(stored))
    if missing:
        raise ValueError(f"the weights lack {', '.join(missing[:5])}")
    weights = {name: stored[key] for name, key in graph.weights.items()}
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"the weight {name} holds numbers that are not finite")
    return weights
