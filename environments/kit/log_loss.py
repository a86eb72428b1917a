"""The score ln(loss - constant) of a language model on held-out text, and signs that it has seen that text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from environments.contract import ScoreReport, ScoreStatus

SUSPICIOUS_ERRORS = 4.0
"""Standard errors beyond which a difference between two texts is flagged."""


@dataclass(frozen=True)
class Loss:
    """A mean loss with what is needed to judge it."""

    mean: float
    """Nats for each scored token."""
    standard_error: float
    """Over what is independent: the environment says which."""
    tokens: int
    """Scored."""
    seconds: float


def log_loss_report(
    loss: Loss, constant: float, told: str, details: Mapping[str, Any], *, why_too_good: str = ""
) -> ScoreReport:
    """Return the report of `ln(loss - constant)`; a loss at or below the constant is invalid.

    Args:
        told: what the message says before the score.
        why_too_good: added to the message of an invalid one.
    """
    if loss.mean <= constant:
        return ScoreReport.rejected(
            ScoreStatus.INVALID,
            f"{told}; the loss is at or below the constant {constant} of the score{why_too_good}",
            **details,
        )
    raw = math.log(loss.mean - constant)
    return ScoreReport.valid(raw, f"{told}; score ln(loss - {constant}) = {raw:.4f}", **details)


def bits_per_byte(loss: float, text_bytes_per_token: float) -> float:
    """Return a loss in nats a token as bits for each byte of text, which compares across vocabularies."""
    return loss / math.log(2) / text_bytes_per_token


def signs_of_seen_text(losses: Mapping[str, Loss]) -> list[str]:
    """Return what a proctor should look at, of the losses on `scoring`, `control` and `train` text."""
    scoring = losses["scoring"]
    found = []
    for name, says in (
        ("control", "the scoring text may have been seen in training"),
        (
            "train",
            "held-out text is easier than training text, which memorisation of all of it would explain",
        ),
    ):
        other = losses[name]
        error = math.hypot(scoring.standard_error, other.standard_error)
        if other.mean - scoring.mean > SUSPICIOUS_ERRORS * error:
            found.append(
                f"loss on {name} text is {other.mean - scoring.mean:.3f} higher than on scoring text: {says}"
            )
    return found
