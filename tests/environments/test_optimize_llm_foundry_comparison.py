"""Tests of comparing weights: the distance, the part of it along the way, and what is too much of either."""

from __future__ import annotations

import pytest
import torch

from environments import registry
from environments.contract import Profile, SpecificationInvalid
from environments.optimize_llm_foundry import comparison
from environments.optimize_llm_foundry.comparison import Comparison, along, compare, distance
from environments.optimize_llm_foundry.settings import decode_settings

Weights = dict[str, torch.Tensor]
SHAPES = {"large": (300, 200), "middling": (100, 100), "small": (50,)}


def profile(name: str) -> Profile:
    return registry.find("optimize_llm_foundry").spec.profile(name)


def test_the_distance_is_the_sum_of_frobenius_norms_and_the_l1_norm_is_another_figure() -> None:
    first = {"a": torch.tensor([[3.0, 0.0], [0.0, 4.0]]), "b": torch.tensor([1.0])}
    second = {"a": torch.zeros(2, 2), "b": torch.tensor([-1.0])}
    found = distance(first, second)
    assert found.frobenius_sum == pytest.approx(5.0 + 2.0)
    assert found.absolute_sum == pytest.approx(7.0 + 2.0)
    assert (found.largest, found.furthest) == (4.0, "a")


def trained(seed: int = 0) -> tuple[Weights, Weights]:
    """Return (weights after training, base model's), the former away from the latter in every tensor."""
    chance = torch.Generator().manual_seed(seed)
    base = {name: torch.randn(shape, generator=chance) for name, shape in SHAPES.items()}
    return {name: w + 0.1 * torch.randn(w.shape, generator=chance) for name, w in base.items()}, base


def further(ours: Weights, base: Weights, by: float) -> Weights:
    return {name: weight + by * (weight - base[name]) for name, weight in ours.items()}


def shaken(ours: Weights, base: Weights, by: float) -> Weights:
    """Return `ours` with rounding of this share of the way, in no direction of its own."""
    chance = torch.Generator().manual_seed(77)
    return {
        name: weight
        + by
        * float((weight - base[name]).norm())
        / weight.numel() ** 0.5
        * torch.randn(weight.shape, generator=chance)
        for name, weight in ours.items()
    }


def judged(theirs: Weights, ours: Weights, base: Weights) -> Comparison:
    return compare(theirs, ours, base, bound_share=0.08, floor_share=0.5, along_bound=0.004)


@pytest.mark.parametrize("by", [-0.021, 0.01])
def test_going_less_far_or_further_shows_along_the_way_where_the_distance_is_allowed(by: float) -> None:
    ours, base = trained()
    found = judged(further(ours, base, by), ours, base)
    assert found.along.along == pytest.approx(by, rel=1e-3)
    assert found.share == pytest.approx(abs(by), rel=1e-3)
    problem = found.problem()
    assert problem is not None
    assert f"{100 * abs(by):.2g} % {'further' if by > 0 else 'less far'}" in problem
    assert "at most 0.4 % is rounding" in problem


def test_rounding_as_large_as_a_step_left_out_is_accepted_since_it_has_no_direction() -> None:
    ours, base = trained()
    found = judged(shaken(ours, base, 0.035), ours, base)
    assert 0.03 < found.share < 0.04
    assert abs(found.along.along) < 0.002
    assert found.problem() is None
    assert found.nearness < 0.5


def test_rounding_does_not_hide_a_step_left_out() -> None:
    ours, base = trained()
    assert "less far" in str(judged(shaken(further(ours, base, -0.02), base, 0.035), ours, base).problem())


def test_the_large_tensor_that_went_another_length_is_named_and_small_ones_are_not() -> None:
    ours, base = trained()
    theirs = {**ours, "large": ours["large"] - 0.05 * (ours["large"] - base["large"])}
    theirs["small"] = base["small"]
    found = along(theirs, ours, base)
    assert found.along_most == pytest.approx(-0.05, rel=1e-3)
    assert found.along_most_in == "large"


def test_weights_are_compared_piece_by_piece_to_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, base = trained()
    theirs = shaken(further(ours, base, 0.01), base, 0.02)
    at_once = judged(theirs, ours, base).details()
    monkeypatch.setattr(comparison, "_PIECE", 1000)
    for key, figure in judged(theirs, ours, base).details().items():
        wanted = at_once[key]
        assert figure == (pytest.approx(wanted, rel=1e-9) if isinstance(wanted, float) else wanted), key


def test_a_reference_that_never_moved_is_no_division_by_nothing() -> None:
    _, base = trained()
    found = judged(base, base, base)
    assert (found.share, found.along.along) == (0.0, 0.0)


@pytest.mark.parametrize("bound", ["along_bound", "quick_along_bound"])
def test_settings_without_a_bound_along_the_way_are_refused(bound: str) -> None:
    known = dict(profile("gpu").settings)
    del known[bound]
    with pytest.raises(SpecificationInvalid, match=bound):
        decode_settings(known)
