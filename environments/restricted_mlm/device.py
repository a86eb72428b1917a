"""The processor or card that evaluates: arithmetic that repeats to the last bit, and whose fault its failures are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import torch

from environments.contract import ProfileUnavailable, ScoreStatus

FOREIGN_GB = 1.5
"""Memory of a card beyond our tensors and our own context (about 0.5 GB) that must be another program's."""

_VARIABLES = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it, cuBLAS may add up in another order each time
    "NVIDIA_TF32_OVERRIDE": "0",
    "CUBLAS_EMULATE_SINGLE_PRECISION": "0",
}
_MEMORY = re.compile(r"out of memory|CUBLAS_STATUS_ALLOC_FAILED|can't allocate memory", re.IGNORECASE)
_BROKEN = re.compile(
    r"CUDA error: (?!CUBLAS_STATUS_(NOT_SUPPORTED|INVALID_VALUE))|CUBLAS_STATUS_(NOT_INITIALIZED|EXECUTION_FAILED"
    r"|INTERNAL_ERROR|ALLOC_FAILED)|CUDA driver|no kernel image|NVML_SUCCESS|can't allocate memory"
)


class DeviceFailed(Exception):
    """The device gave up on an operation that is allowed: out of memory, or broken."""

    def __init__(self, cause: BaseException, at: str = "") -> None:
        super().__init__(str(cause))
        self.cause, self.at = cause, at


@dataclass(frozen=True)
class Verdict:
    """What a failure of the device means for the submission."""

    status: ScoreStatus
    message: str


def ready_device(name: str, profile_name: str) -> torch.device:
    """Return the device `name`, set up for arithmetic that repeats to the last bit.

    On a card this changes settings of the whole process; float32 means float32 from then on.

    Raises:
        ProfileUnavailable: there is none.
    """
    if torch.device(name).type == "cpu":
        return torch.device(name)
    os.environ.update(_VARIABLES)  # read when the first handle is made
    if not torch.cuda.is_available():
        raise ProfileUnavailable(
            f"the profile {profile_name} evaluates on a GPU, and PyTorch finds none here; "
            "`nvidia-smi` and CUDA_VISIBLE_DEVICES say why"
        )
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device(name)


def is_device_failure(error: BaseException) -> bool:
    """Whether `error` speaks of the device and not of the operation it was asked for."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    accelerator: type[BaseException] | None = getattr(torch, "AcceleratorError", None)  # since PyTorch 2.8
    if accelerator is not None and isinstance(error, accelerator):
        return True
    return isinstance(error, RuntimeError) and bool(_BROKEN.search(str(error)))


def judge(failed: DeviceFailed, device: torch.device, batch: int) -> Verdict:
    """Say whether a device that failed did so because of the submission.

    Its tensors were found to keep to the profile's limits, so a card that others have filled is never its fault.
    """
    first = next(iter(str(failed.cause).strip().splitlines()), type(failed.cause).__name__)[:200]
    if not (isinstance(failed.cause, MemoryError) or _MEMORY.search(str(failed.cause))):
        return Verdict(
            ScoreStatus.INFRASTRUCTURE,
            f"the device failed while the model was evaluated, which does not count against you ({first}); score again",
        )
    if device.type != "cuda":
        return Verdict(
            ScoreStatus.INFRASTRUCTURE,
            "this machine ran out of memory while the model was evaluated, which does not count against you; "
            "end what else is running and score again",
        )
    try:
        total, foreign = _card_gb(device)
    except RuntimeError:  # no room even to ask
        return Verdict(
            ScoreStatus.INFRASTRUCTURE,
            "the card is full with other programs' data, which does not count against you; end them "
            "(`nvidia-smi` lists them) and score again",
        )
    if foreign > FOREIGN_GB:
        return Verdict(
            ScoreStatus.INFRASTRUCTURE,
            f"other programs hold {foreign:.1f} GB of the card's {total:.1f} GB and the evaluation found no room, which "
            "does not count against you; end them (`nvidia-smi` lists them) and score again",
        )
    where = f" at {failed.at}" if failed.at else ""
    return Verdict(
        ScoreStatus.OUT_OF_MEMORY,
        f"the model needs more than the card's {total:.1f} GB for a batch of {batch} rows{where}; use a smaller model",
    )


def _card_gb(device: torch.device) -> tuple[float, float]:
    """Return the card's memory and how much of it neither is free nor belongs to our tensors."""
    free, total = torch.cuda.mem_get_info(device)
    return total / 1e9, (total - free - torch.cuda.memory_reserved(device)) / 1e9
