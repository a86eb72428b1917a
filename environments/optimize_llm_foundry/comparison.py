"""Measures how far two sets of weights are apart and whether one went further along the other's way; says what is too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import Value

if TYPE_CHECKING:
    from torch import Tensor

_PIECE = 2**24
"""Weights at a time: their double-precision copies take 128 MB each."""
_LARGE = 0.01
"""A tensor is large that makes up this share of the squared way from the base."""


class Distance(Value, frozen=True):
    """How far two sets of weights are apart."""

    frobenius_sum: float
    """Sum over tensors of the Frobenius norm of the difference (what is compared with the bound)."""
    absolute_sum: float
    """Sum over all weights of the absolute difference (an L1 norm)."""
    largest: float
    """Largest difference of one weight."""
    furthest: str
    """Tensor with the largest norm of the difference."""


class Along(Value, frozen=True):
    """How much further than the reference a result went on the reference's own way from the base model.

    Rounding pushes in all directions and hardly shows here; a step left out or another learning rate pushes along the way.
    """

    along: float
    """<theirs - ours, ours - base> / |ours - base|^2 over all weights: -0.02 is 2 % less far."""
    along_most: float
    """The same of the large tensor where it is furthest from 0."""
    along_most_in: str


@dataclass(frozen=True)
class Comparison:
    """Where a result lies between the base model and the reference."""

    to_reference: Distance
    from_base: Distance
    reference_from_base: Distance
    along: Along
    bound: float
    floor: float
    along_bound: float

    @property
    def share(self) -> float:
        """Distance to the reference as a share of the reference's way from the base."""
        return self.to_reference.frobenius_sum / max(self.reference_from_base.frobenius_sum, 1e-300)

    @property
    def nearness(self) -> float:
        """How much of what is allowed is used up: 1 lies on a bound."""
        return max(
            self.to_reference.frobenius_sum / max(self.bound, 1e-300),
            abs(self.along.along) / self.along_bound,
        )

    def problem(self) -> str | None:
        """Say why the result is not accepted, if it is not."""
        if self.from_base.frobenius_sum < self.floor:
            return (
                f"the weights have hardly left the base model ({self.from_base.frobenius_sum:.4g}, at least "
                f"{self.floor:.4g} is expected; sums over tensors of the Frobenius norm of the difference)"
            )
        if self.to_reference.frobenius_sum > self.bound:
            return (
                f"the weights differ from those of the untouched script by {self.to_reference.frobenius_sum:.4g}, more "
                f"than {self.bound:.4g} (sums over tensors of the Frobenius norm of the difference); "
                f"most in {self.to_reference.furthest}"
            )
        if abs(self.along.along) > self.along_bound:
            further = "further" if self.along.along > 0 else "less far"
            return (
                f"the weights went {_percent(abs(self.along.along))} {further} than those of the untouched script, in its "
                f"own direction; at most {_percent(self.along_bound)} is rounding (steps, learning rate, schedule?)"
            )
        return None

    def details(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self.to_reference), **msgspec.to_builtins(self.along),
                "from_base": self.from_base.frobenius_sum, "reference_from_base": self.reference_from_base.frobenius_sum,
                "bound": self.bound, "floor": self.floor, "along_bound": self.along_bound, "share": self.share}  # fmt: skip


def compare(
    theirs: Mapping[str, Tensor],
    ours: Mapping[str, Tensor],
    base: Mapping[str, Tensor],
    *,
    bound_share: float,
    floor_share: float,
    along_bound: float,
) -> Comparison:
    """Compare a result with the reference's weights; all three have the names of `ours`."""
    moved = distance(ours, base)
    return Comparison(
        distance(theirs, ours), distance(theirs, base), moved, along(theirs, ours, base),
        bound=bound_share * moved.frobenius_sum, floor=floor_share * moved.frobenius_sum, along_bound=along_bound,
    )  # fmt: skip


def distance(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> Distance:
    """Return how far two sets of weights with the same names are apart, computed in double precision."""
    norms: dict[str, float] = {}
    absolute = largest = 0.0
    for name, tensor in second.items():
        square = 0.0
        for theirs, ours in _pieces(first[name], tensor):
            difference = theirs - ours
            square += float(difference.square().sum())
            absolute += float(difference.abs().sum())
            largest = max(largest, float(difference.abs().max()))
        norms[name] = square**0.5
    furthest = max(norms, key=lambda name: norms[name])
    return Distance(
        frobenius_sum=sum(norms.values()), absolute_sum=absolute, largest=largest, furthest=furthest
    )


def along(theirs: Mapping[str, Tensor], ours: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> Along:
    """Return how much further `theirs` went than `ours`, on the way from `base` to `ours`."""
    sums = {name: along_sums(theirs[name], tensor, base[name]) for name, tensor in ours.items()}
    whole = sum(square for _, square in sums.values())
    shares = {name: product / square for name, (product, square) in sums.items() if square > _LARGE * whole}
    most = max(shares, key=lambda name: abs(shares[name]), default="")
    product = sum(product for product, _ in sums.values())
    return Along(
        along=product / whole if whole else 0.0, along_most=shares.get(most, 0.0), along_most_in=most
    )


def along_sums(theirs: Tensor, ours: Tensor, base: Tensor) -> tuple[float, float]:
    """Return <theirs - ours, ours - base> and |ours - base|^2 of one tensor."""
    product = square = 0.0
    for their, our, start in _pieces(theirs, ours, base):
        way = our - start
        product += float(((their - our) * way).sum())
        square += float(way.square().sum())
    return product, square


def _pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield a few weights of each tensor at a time, in double precision."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), _PIECE):
        yield tuple(tensor[start : start + _PIECE].double() for tensor in flat)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
