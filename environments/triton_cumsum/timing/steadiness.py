"""Judges whether the machine was quiet enough, from the calibrations around a timing, for its figure to be a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from environments.triton_cumsum.timing.bench import Interval
from environments.triton_cumsum.timing.cost import HarnessCost, per_call
from environments.triton_cumsum.timing.spread import Spread

_WHAT_TO_DO = (
    "The machine was not quiet enough for a score, which says nothing about your function: score again when nothing else "
    "runs on it, on its processors and its other GPUs either"
)


@dataclass(frozen=True)
class Steady:
    """The most that may be unsteady. All are shares of the function's own time: what is off by that could be in the score."""

    moved: float
    """Between the calibrations before and after, what the harness costs apart from inputs' appearing."""
    appearing: float
    """Between the calibrations and the submission's intervals, the time in which inputs appear."""
    uncertainty: float
    """One standard error of the score; of a single calibration, as a share of what the harness costs."""
    again: int = 3
    """How often to calibrate anew before the submission is imported: most disturbances pass."""
    pause: float = 1.0
    """Seconds before each."""

    def calm(self, known: Sequence[Interval]) -> bool:
        """Whether a calibration agrees with itself."""
        cost = HarnessCost.of(known, in_turn=False)
        return cost is None or cost.error <= self.uncertainty * cost.whole.median

    def why_not(
        self, before: Sequence[Interval], timed: Sequence[Interval], after: Sequence[Interval]
    ) -> str | None:
        """Return what moved and by how much; None where the figure may be a score."""
        costs = [HarnessCost.of(known, in_turn=False) for known in (before, after, [*before, *after])]
        first, last, both = costs
        if first is None or last is None or both is None:
            return None  # nothing was calibrated, which is refused elsewhere
        calls = Spread.of([both.net(i) for i in timed])
        own = Spread.of([per_call(i, i.reveal) for i in timed]).median
        rests = (first.rest.median, last.rest.median)
        reveals = (first.reveal.median, own, last.reveal.median)
        moved, appearing = (_range(values) / calls.median for values in (rests, reveals))
        uncertain = both.uncertainty(calls)
        if not moved <= self.moved:
            what = (
                f"what the harness itself costs went from {rests[0]:.4f} to {rests[1]:.4f} ms a call, "
                f"which is {_limited(moved, self.moved)}"
            )
        elif not appearing <= self.appearing:
            what = (
                f"inputs appeared in {reveals[0]:.4f} ms a call before, in {own:.4f} with your function and in "
                f"{reveals[2]:.4f} afterwards, a difference of {_limited(appearing, self.appearing)}; a function that "
                "leaves work running on the GPU does that too"
            )
        elif not uncertain <= self.uncertainty:
            what = (
                f"the time is uncertain by {_limited(uncertain, self.uncertainty)} "
                f"({calls.least:.4g} to {calls.most:.4g} ms in {calls.count} timings); a function whose own time varies "
                "as much does that too"
            )
        else:
            return None
        return f"{what}. {_WHAT_TO_DO}"


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _limited(share: float, limit: float) -> str:
    return f"{100 * share:.2g} % of your function's time (limit {100 * limit:.2g} %)"
