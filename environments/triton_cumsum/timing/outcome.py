"""How a submission is to be timed, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from environments.contract import ScoreStatus
from environments.triton_cumsum.timing.spread import Spread
from environments.triton_cumsum.timing.steadiness import Steady
from environments.worker import Answered, Failed

FASTER_THAN_COPY = "faster-than-a-copy"
"""Flag of a result that no honest reading and writing of everything allows."""


REVEAL_TOOK_LONGER = "inputs-took-longer-to-appear"
"""Flag of a submission that seems to keep the GPU busy before it is asked; what that costs is in its time."""
COST_MOVED = "harness-cost-moved"
"""Flag of a score whose calibrations before and after differ by more than noise explains."""


@dataclass(frozen=True)
class Plan:
    """How one submission is timed."""

    seconds: float
    """For the timed part; it ends earlier once the median is certain enough."""
    call_seconds: float
    """For one interval to be answered."""
    open_seconds: float
    """For importing the submission, compiling included."""
    least: int = 20
    """Timed intervals before certainty may end it."""
    most: int = 400
    relative_error: float = 0.005
    warm_ups: tuple[int, int] = (2, 4)
    """The number is drawn between these for each scoring, so that it cannot be counted on."""
    known: int = 10
    """Intervals of the known function, before and again after; or one beside each timed interval where `in_turn`."""
    in_turn: bool = False
    """Run the known function beside each timed interval, with the submission frozen."""
    block: int = 3
    """Consecutive intervals whose median counts as one stretch."""
    steady: Steady | None = None
    """What may be unsteady before there is no score; not asked where the known function runs in turn."""


@dataclass(frozen=True)
class Timed:
    """What was measured. Times are milliseconds for one call."""

    calls: Spread
    """With the harness's own cost taken out."""
    measured: Spread
    """As the clock said."""
    quiet: float
    """Median of the quietest stretch, the harness's cost taken out."""
    overhead: Spread
    """What the harness costs, per call, in intervals of the known function; see `cost` for how it is taken off."""
    reveal: Spread
    """The part of that in which the inputs appear, in the known function's intervals."""
    own_reveal: Spread
    """The same in the submission's."""
    rests: tuple[float, ...]
    """What the harness costs apart from that, in the calibration before and in the one after; empty if in turn."""
    uncertainty: float
    """Relative, one standard error, of the median without the harness's cost; the calibration's is in it."""
    copy: Spread
    """The known function: one read and one write of everything."""
    quiet_copy: float
    said: Spread | None
    """What the submission's process says of itself: never believed, but a proctor may compare."""
    against_copy: Spread | None
    """The submission over the known function, interval by interval, where they ran in turn."""
    warm_ups: int
    checked: int
    """Calls whose whole result was compared."""
    flags: tuple[str, ...]
    stages: dict[str, float]
    """Seconds of each part of the scoring."""
    answered: Answered
    series: tuple[float, ...] = field(repr=False, default=())
    copies: tuple[float, ...] = field(repr=False, default=())

    def details(self) -> dict[str, Any]:
        """Return everything for the proctor, as plain JSON."""
        spreads = {
            name: msgspec.to_builtins(value)
            for name in (
                "calls", "measured", "overhead", "reveal", "own_reveal", "copy", "said", "against_copy",
            )
            if (value := getattr(self, name)) is not None
        }  # fmt: skip
        rests = {"rest_before": self.rests[0], "rest_after": self.rests[1]} if self.rests else {}
        return {
            "milliseconds": {**spreads, **rests, "quiet": self.quiet, "quiet_copy": self.quiet_copy},
            "uncertainty": self.uncertainty,
            "series": [round(ms, 5) for ms in self.series],
            "warm_ups": self.warm_ups,
            "checked_calls": self.checked,
            "flags": list(self.flags),
            "stages": self.stages,
        }


@dataclass(frozen=True)
class NotTimed:
    """Why there is no time, as a scoring status and a sentence for the participant."""

    status: ScoreStatus
    message: str
    where: str | None = None
    log: str = ""
    details: dict[str, Any] = field(repr=False, default_factory=dict)
    """What was measured all the same, for the proctor."""
    unsteady: bool = False
    """Whether to try once more is worth while: the machine was disturbed, and may not be any longer."""

    @classmethod
    def of(cls, failed: Failed) -> NotTimed:
        return cls(failed.status, failed.message, failed.where, failed.log)

    @classmethod
    def of_unsteady(cls, why: str, timed: Timed) -> NotTimed:
        log, details = timed.answered.log, timed.details()
        return cls(ScoreStatus.INFRASTRUCTURE, why, log=log, details=details, unsteady=True)
