"""What an environment tells the bench: which arrays there are, what fresh inputs look like, and what the right answer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from environments.kit.timing.layout import Block, Shapes

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


@dataclass(frozen=True)
class Mismatch:
    """The first place where an answer is not the right one."""

    case: str
    index: int
    expected: float
    found: float
    wrong: int
    """How many elements differ."""
    late: bool = False
    """It was right later, but not when the clock stopped."""

    def sentence(self) -> str:
        if self.late:
            return (
                f"{self.case}: the result was still being written after the call had ended "
                f"({self.wrong} of the elements read when the clock stopped were not there yet)"
            )
        return (
            f"{self.case}: element {self.index} is {self.found:g}, expected {self.expected:g} "
            f"({self.wrong} elements are wrong)"
        )
