"""Finds what the harness itself adds to a timed interval, from intervals of a known function, and takes it off others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from environments.triton_cumsum.timing.bench import Interval
from environments.triton_cumsum.timing.spread import Spread, error_of_median

_REVEAL_MARGIN = 1.02
"""How much longer than usual the inputs' appearing may take before the rest counts as the submission's time."""


@dataclass(frozen=True)
class HarnessCost:
    """Milliseconds for one call, from a known function whose own time is believed.

    It has two parts. Where inputs appear only when the clock runs, the scorer times their appearing in every interval:
    that part is taken off by each interval's own figure, so that drifts between calibration and submission cancel. It
    is taken off up to what is usual only: work that shares the card while inputs appear is charged. The rest (two
    processes taking turns, the final reading) can be told from the submission's work in the known function alone.
    """

    whole: Spread
    reveal: Spread
    rest: Spread
    error: float
    """One standard error of the rest's median, in milliseconds."""
    in_turn: bool
    """Others may use the processors: the harness's middle cost is partly theirs; its least is surely its own."""

    @classmethod
    def of(cls, intervals: Sequence[Interval], *, in_turn: bool) -> HarnessCost | None:
        """Return the cost; None where no interval of the known function says its own time."""
        known = [i for i in intervals if i.inner is not None]
        if not known:
            return None
        whole = [per_call(i, i.overhead or 0.0) for i in known]
        reveal = [per_call(i, i.reveal) for i in known]
        rest = [w - r for w, r in zip(whole, reveal, strict=True)]
        return cls(Spread.of(whole), Spread.of(reveal), Spread.of(rest), error_of_median(rest), in_turn)

    def net(self, interval: Interval) -> float:
        """Return an interval's milliseconds for one call without the harness's part."""
        measured = per_call(interval, interval.seconds)
        reveal = min(per_call(interval, interval.reveal), _REVEAL_MARGIN * self.reveal.median)
        taken_off = reveal + (self.rest.least if self.in_turn else self.rest.median)
        return measured - taken_off if measured > taken_off else measured

    def exceeded_by(self, intervals: Sequence[Interval]) -> bool:
        """Whether inputs took longer than usual to appear in most of `intervals`: something else ran meanwhile."""
        middle = Spread.of([per_call(i, i.reveal) for i in intervals]).median
        return middle > _REVEAL_MARGIN * self.reveal.median

    def uncertainty(self, calls: Spread) -> float:
        """Return the relative uncertainty (one standard error) of the net median, the calibration's included."""
        own = 0.0 if self.in_turn else self.error
        return math.hypot(calls.error * calls.median, own) / calls.median


def per_call(interval: Interval, seconds: float) -> float:
    """Return the milliseconds of one call of an interval's `seconds`."""
    return 1000 * seconds / interval.calls
