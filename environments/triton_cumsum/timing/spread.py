"""Middle, uncertainty and comparison of repeated timings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """What repeated timings of one thing look like, in the unit they were given in."""

    count: int
    median: float
    least: float
    most: float
    error: float
    """Relative uncertainty (one standard error) of the median."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        return cls(
            len(ordered),
            statistics.median(ordered),
            ordered[0],
            ordered[-1],
            relative_error_of_median(ordered),
        )


def relative_error_of_median(values: Sequence[float]) -> float:
    """Return the half-width of the median's 68 % interval over the median; infinite for fewer than three values."""
    error = error_of_median(values)
    middle = abs(statistics.median(values)) if error < math.inf else 0.0
    return error / middle if middle else (math.inf if error else 0.0)


def error_of_median(values: Sequence[float]) -> float:
    """Return the half-width of the median's 68 % interval.

    The interval is between order statistics (ranks n/2 -+ sqrt(n)/2), so it supposes nothing of the distribution:
    timings have a long upper tail that would spoil a standard deviation.
    """
    count = len(values)
    if count < 3:
        return math.inf
    ordered = sorted(values)
    middle, half = (count - 1) / 2, math.sqrt(count) / 2
    return (_at(ordered, middle + half) - _at(ordered, middle - half)) / 2


def quietest(values: Sequence[float], block: int) -> float:
    """Return the smallest median of `block` consecutive values.

    On a machine that others use, disturbances come in stretches and only ever add time. The median of the quietest
    stretch is close to what an undisturbed machine gives, and steadier than the minimum of single calls.
    """
    width = min(block, len(values))
    return min(statistics.median(values[i : i + width]) for i in range(len(values) - width + 1))


def ratio(values: Sequence[float], yardsticks: Sequence[float]) -> Spread:
    """Return how `values` compare with yardsticks measured in turn with them, pair by pair."""
    return Spread.of([value / yardstick for value, yardstick in zip(values, yardsticks, strict=True)])


def _at(ordered: Sequence[float], rank: float) -> float:
    """Return the value at a fractional rank, counted from 0."""
    rank = min(max(rank, 0.0), len(ordered) - 1.0)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])
