"""When a machine was too unsteady for a score, what is said of it then, and that no disturbance becomes a gain."""

from __future__ import annotations

import random

import pytest

from environments.triton_cumsum.timing.bench import Interval
from environments.triton_cumsum.timing.cost import HarnessCost
from environments.triton_cumsum.timing.spread import Spread
from environments.triton_cumsum.timing.steadiness import Steady
from tests.environments.test_timing_cost import interval

STEADY = Steady(moved=0.03, appearing=0.05, uncertainty=0.015)
FUNCTION = 0.2175
"""Milliseconds of the function that is timed."""


def some(
    call: float, *, seed: int, count: int = 30, reveal: float = 0.1975, rest: float = 0.037
) -> list[Interval]:
    """Return intervals that vary as they were seen to on an H200."""
    chance = random.Random(seed)
    return [
        interval(call, reveal * (1 + chance.gauss(0, 0.008)), rest * (1 + chance.gauss(0, 0.06)))
        for _ in range(count)
    ]


def net(known: list[Interval], timed: list[Interval]) -> float:
    cost = HarnessCost.of(known, in_turn=False)
    assert cost is not None
    return Spread.of([cost.net(i) for i in timed]).median


@pytest.mark.parametrize("seed", range(20))
def test_a_quiet_machine_gives_a_score(seed: int) -> None:
    """Drifts as large as those seen between scores of a quiet machine are let be."""
    before, after = some(0.19, seed=seed, rest=0.0355), some(0.19, seed=seed + 100, rest=0.0385)
    timed = some(FUNCTION, seed=seed + 200, reveal=0.1955)
    assert STEADY.calm(before)
    assert STEADY.why_not(before, timed, after) is None


@pytest.mark.parametrize(("first", "last"), [(0.037, 0.22), (0.22, 0.037), (0.037, 0.046), (0.046, 0.037)])
def test_a_cost_that_moved_is_no_score_and_is_told_with_its_size(first: float, last: float) -> None:
    before, after = some(0.19, seed=1, rest=first), some(0.19, seed=2, rest=last)
    why = STEADY.why_not(before, some(FUNCTION, seed=3), after)
    assert why is not None
    assert "what the harness itself costs went from 0.0" in why or "from 0.2" in why
    assert "limit 3 %" in why
    assert "score again when nothing else runs" in why


@pytest.mark.parametrize("rest", [0.030, 0.033, 0.040, 0.044, 0.060, 0.1])
def test_what_passes_gives_away_less_than_the_limit_whichever_calibration_is_dear(rest: float) -> None:
    """Half of what moved at most is in the middle of both calibrations."""
    timed = some(FUNCTION, seed=3)
    calm, dear = some(0.19, seed=1), some(0.19, seed=2, rest=rest)
    for before, after in ((calm, dear), (dear, calm)):
        if STEADY.why_not(before, timed, after) is None:
            assert net([*before, *after], timed) > FUNCTION * (1 - STEADY.moved)


def test_the_same_movement_matters_less_to_a_slow_function() -> None:
    before, after = some(0.19, seed=1, rest=0.037), some(0.19, seed=2, rest=0.050)
    assert STEADY.why_not(before, some(FUNCTION, seed=3), after) is not None
    assert STEADY.why_not(before, some(4.276, seed=3), after) is None


def test_dear_and_cheap_stretches_alike_before_and_after_are_too_uncertain() -> None:
    chance = random.Random(1)

    def disturbed() -> list[Interval]:
        return [interval(0.19, 0.1975, chance.choice([0.037, 0.060])) for _ in range(30)]

    before, after = disturbed(), disturbed()
    assert not STEADY.calm(before)
    assert STEADY.why_not(before, some(FUNCTION, seed=3), after) is not None


def test_a_time_that_varies_too_much_is_too_uncertain() -> None:
    timed = [interval(call, 0.1975, 0.037) for call in (0.2, 0.3, 0.4, 0.5) * 5]
    why = STEADY.why_not(some(0.19, seed=1), timed, some(0.19, seed=2))
    assert why is not None
    assert "uncertain" in why
    assert "limit 1.5 %" in why


@pytest.mark.parametrize("appearing", [0.15, 0.30])
def test_inputs_that_appear_at_quite_another_speed_than_usual_are_no_score(appearing: float) -> None:
    timed = some(FUNCTION, seed=3, reveal=appearing)
    why = STEADY.why_not(some(0.19, seed=1), timed, some(0.19, seed=2))
    assert why is not None
    assert "inputs appeared" in why
    assert "limit 5 %" in why
