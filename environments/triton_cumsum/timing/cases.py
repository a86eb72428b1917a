"""What an environment tells the bench: which arrays there are, what fresh inputs look like, and what the right answer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from environments.triton_cumsum.timing.memory import Block, Shapes

Draw = Callable[[Any], Sequence[Any]]
"""Returns fresh input arrays from a generator that the operating system seeded: a `numpy.random.Generator`, or a
`torch.Generator` on the device, whose tensors then stay there."""


@dataclass(frozen=True)
class Case:
    """One kind of call."""

    name: str
    """For the participant: `length 1`, `no positive value`."""
    shapes: Shapes
    draw: Draw


class Workload(Protocol):
    """One function's calls on one kind of device."""

    @property
    def inputs(self) -> tuple[Block, ...]: ...

    @property
    def output(self) -> Block: ...

    @property
    def timed(self) -> Case: ...

    @property
    def checks(self) -> tuple[Case, ...]:
        """Asked before the timed calls, those of the same shapes among them too; never timed."""

    @property
    def tolerance(self) -> tuple[float, float]:
        """Relative and absolute; (0, 0) means equal to the bit."""

    def expected(self, inputs: Sequence[Any]) -> Any:
        """Return the right answer: computed after the call, from arrays the worker never saw."""


class Fault(StrEnum):
    """What can be wrong with a call."""

    WRONG = "wrong"
    LATE = "late"
    """Right soon afterwards, but not when the clock stopped."""
    INPUT_CHANGED = "input-changed"


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with one call's result."""

    case: str
    fault: Fault
    count: int = 0
    """Wrong elements."""
    index: int = 0
    """The first of them."""
    expected: float = 0.0
    found: float = 0.0

    def sentence(self) -> str:
        match self.fault:
            case Fault.WRONG:
                return (
                    f"{self.case}: element {self.index:,} is {self.found:.10g}, expected {self.expected:.10g} "
                    f"({self.count:,} wrong in all)"
                )
            case Fault.LATE:
                return (
                    f"{self.case}: the result was still being written after the call had ended: "
                    f"{self.count:,} of the elements read when the clock stopped were not there yet"
                )
            case Fault.INPUT_CHANGED:
                return f"{self.case}: the input was changed; it must be left as it is"
