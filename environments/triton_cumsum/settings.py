"""What a profile's settings and the sealed keys hold, decoded strictly."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from environments.contract import Value
from environments.kit.settings import SealedKeys, decoder


class Statistic(StrEnum):
    """Which figure of the repeated timings becomes the score."""

    MEDIAN = "median"
    """Of all timed calls: for a GPU that nobody else uses."""
    QUIETEST = "quietest"
    """The median of the quietest stretch: for processors that others use."""


class SteadySettings(Value, frozen=True, forbid_unknown_fields=True):
    """How unsteady a machine may be before there is no score; see `environments.triton_cumsum.timing.steadiness.Steady`."""

    moved: float
    appearing: float
    uncertainty: float


class CumsumSettings(Value, frozen=True, forbid_unknown_fields=True):
    """`[profiles.*.settings]`."""

    device: str
    """`cpu` or `cuda:0`."""
    length: int
    slots: int
    """Calls in one timed interval."""
    threads: int
    timing_seconds: float
    call_seconds: float
    open_seconds: float
    least: int
    most: int
    statistic: Statistic
    relative_error: float = 0.005
    """Of the median, at which timing ends."""
    known: int = 10
    """Intervals of the known function before, and again after, where it does not run in turn."""
    steady: SteadySettings | None = None
    """Not on the host, where others may use the processors."""

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"


class Keys(Value, frozen=True, forbid_unknown_fields=True):
    """What stays sealed: the lengths at which results are checked."""

    lengths: tuple[int, ...]


KEYS = SealedKeys(Path(__file__).parent, Keys)
decode_settings = decoder("triton_cumsum", CumsumSettings)
"""Return a profile's settings, decoded strictly."""
