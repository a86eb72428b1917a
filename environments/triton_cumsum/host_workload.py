"""The running sum on NumPy arrays: fresh inputs and right answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from environments.triton_cumsum.cases import FULL_SIZE, SPECIAL, USUAL, Kind
from environments.triton_cumsum.timing import Block, Case, Shapes

if TYPE_CHECKING:
    import numpy as np


class HostWorkload:
    """One int32 array in, one out."""

    tolerance = (0.0, 0.0)

    def __init__(self, length: int, lengths: Sequence[int], special_length: int) -> None:
        self.inputs = (Block("int32", length),)
        self.output = Block("int32", length)
        self.timed = case(USUAL, length)
        short = [case(USUAL, n) for n in lengths if n <= length]
        special = [case(kind, min(special_length, length)) for kind in SPECIAL]
        self.checks = (*short, *special, *(case(kind, length) for kind in FULL_SIZE))

    def expected(self, inputs: Sequence[Any]) -> Any:
        return running_sum(inputs[0])


def case(kind: Kind, length: int) -> Case:
    """Return a case of `length` values of one kind."""

    def draw(chance: np.random.Generator) -> list[Any]:
        import numpy as np

        def uniform(low: int, high: int) -> Any:
            narrow = np.int8 if low >= -128 and high <= 128 else np.int32
            return chance.integers(low, high, length, dtype=narrow).astype(np.int32)

        return [kind.draw(uniform).astype(np.int32)]

    return Case(f"length {length:,}, {kind.name}", Shapes(((length,),), (length,)), draw)


def running_sum(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return y with y[i] = the sum of those x[j], j <= i, before which an odd number of x are positive (int32, wrapping)."""
    import numpy as np

    positive = x > 0
    odd = np.cumsum(positive, dtype=np.uint8)  # wraps at 256, which leaves parity alone
    odd -= positive
    odd &= 1
    return np.cumsum(x * odd, dtype=np.int32)
