"""The running sum on CUDA tensors: fresh inputs and right answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from environments.triton_cumsum.cases import FULL_SIZE, SPECIAL, USUAL, Kind
from environments.triton_cumsum.timing import Block, Case, Shapes


class DeviceWorkload:
    """One int32 tensor in, one out."""

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
    """Return a case of `length` values of one kind, drawn on the generator's device."""

    def draw(chance: Any) -> list[Any]:
        import torch

        def uniform(low: int, high: int) -> Any:
            return torch.randint(
                low, high, (length,), generator=chance, device=chance.device, dtype=torch.int32
            )

        return [kind.draw(uniform).to(torch.int32)]

    return Case(f"length {length:,}, {kind.name}", Shapes(((length,),), (length,)), draw)


def running_sum(x: Any) -> Any:
    """Return y with y[i] = the sum of those x[j], j <= i, before which an odd number of x are positive (int32, wrapping)."""
    import torch

    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)
