"""The inputs that results are timed and checked on: kinds of values, each as small arithmetic on uniform draws.

Every kind is written once for both NumPy and PyTorch: `uniform(low, high)` gives int32 values in [low, high).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Uniform = Callable[[int, int], Any]

LOW, HIGH = -10, 10
INT32_LOW, INT32_HIGH = -(2**31), 2**31


@dataclass(frozen=True)
class Kind:
    """One sort of input values."""

    name: str
    draw: Callable[[Uniform], Any]


USUAL = Kind("values from -10 to 9", lambda uniform: uniform(LOW, HIGH))
LARGE = Kind("large values, sums that wrap around", lambda uniform: uniform(INT32_LOW, INT32_HIGH))
POSITIVE = Kind("only positive values", lambda uniform: uniform(1, HIGH))
NOT_POSITIVE = Kind("no positive value", lambda uniform: uniform(LOW, 1))
ZERO = Kind("only zeros", lambda uniform: uniform(0, 1))
SPARSE = Kind("positive values far apart", lambda uniform: uniform(LOW, 1) + 40 * (uniform(0, 50_000) == 0))
CROWDED = Kind("mostly positive values", lambda uniform: uniform(1, HIGH) - 20 * (uniform(0, 50_000) == 0))

SPECIAL = (LARGE, POSITIVE, NOT_POSITIVE, ZERO, SPARSE, CROWDED)
FULL_SIZE = (USUAL, LARGE, SPARSE, POSITIVE)
"""Checked at the timed length too."""
