"""What the harness's own cost is found to be, and what of it is taken off whom."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from environments.triton_cumsum.timing.bench import Interval
from environments.triton_cumsum.timing.cost import HarnessCost
from environments.triton_cumsum.timing.spread import Spread

CALLS = 16


def interval(call: float, reveal: float, rest: float, *, inner: bool = True) -> Interval:
    """Return an interval whose parts are given in milliseconds for one call."""
    answered: Any = None
    return Interval(
        seconds=CALLS * (call + reveal + rest) / 1000,
        calls=CALLS,
        inner=CALLS * call / 1000 if inner else None,
        refused=None,
        late=False,
        answered=answered,
        reveal=CALLS * reveal / 1000,
    )


def known(count: int = 20, reveal: float = 0.19, rest: float = 0.03, noise: float = 0.0) -> list[Interval]:
    chance = random.Random(3)
    return [interval(0.19, reveal, rest * (1 + chance.gauss(0, noise))) for _ in range(count)]


def cost_of(intervals: list[Interval], *, in_turn: bool = False) -> HarnessCost:
    cost = HarnessCost.of(intervals, in_turn=in_turn)
    assert cost is not None
    return cost


def test_what_is_left_is_the_functions_own_time() -> None:
    assert cost_of(known()).net(interval(0.25, 0.19, 0.03)) == pytest.approx(0.25)


def test_a_drift_of_the_copying_between_calibration_and_submission_cancels() -> None:
    cost = cost_of(known())
    for drift in (0.97, 0.99, 1.01):
        assert cost.net(interval(0.25, 0.19 * drift, 0.03)) == pytest.approx(0.25)


def test_work_that_makes_inputs_appear_slowly_is_charged_with_what_it_took() -> None:
    cost = cost_of(known())
    assert cost.net(interval(0.0, 0.19 + 0.25, 0.03)) == pytest.approx(0.25, abs=0.005)
    busy = [interval(0.1, 0.19 + 0.15, 0.03)] * 3
    assert cost.exceeded_by(busy)
    assert not cost.exceeded_by([interval(0.25, 0.19, 0.03)] * 3)


def test_without_a_time_of_the_known_functions_own_nothing_is_calibrated() -> None:
    assert HarnessCost.of([interval(0.19, 0.19, 0.03, inner=False)], in_turn=False) is None


def test_where_it_runs_in_turn_the_least_cost_is_the_harnesss_own() -> None:
    shared = [interval(2.0, 0.0, rest) for rest in (0.9, 0.1, 0.5)]
    assert cost_of(shared, in_turn=True).net(interval(7.0, 0.0, 0.1)) == pytest.approx(7.0)
    assert cost_of(shared).net(interval(7.0, 0.0, 0.5)) == pytest.approx(7.0)


def test_a_time_below_the_harnesss_cost_is_left_as_the_clock_said() -> None:
    assert cost_of(known()).net(interval(0.0, 0.0, 0.01)) == pytest.approx(0.01)


def test_the_calibrations_uncertainty_is_in_the_results() -> None:
    calls = Spread.of([0.2500, 0.2501, 0.2502, 0.2499, 0.2498] * 4)
    steady, noisy = cost_of(known()).uncertainty(calls), cost_of(known(noise=0.2)).uncertainty(calls)
    assert steady == pytest.approx(calls.error)
    assert noisy > 2 * steady
    assert cost_of(known(count=200, noise=0.2)).uncertainty(calls) < noisy


def test_the_uncertainty_foretells_how_far_repeated_scores_lie_apart() -> None:
    chance = random.Random(5)

    def noisy(call: float) -> Interval:
        return interval(call, 0.19 * (1 + chance.gauss(0, 0.01)), 0.034 * (1 + chance.gauss(0, 0.1)))

    found, foretold = [], []
    for _ in range(200):
        cost = cost_of([noisy(0.19) for _ in range(60)])
        calls = Spread.of([cost.net(noisy(0.25)) for _ in range(40)])
        found.append(calls.median)
        foretold.append(cost.uncertainty(calls))
    mean = sum(found) / len(found)
    spread = math.sqrt(sum((x - mean) ** 2 for x in found) / (len(found) - 1)) / mean
    assert 0.7 < spread / (sum(foretold) / len(foretold)) < 1.4
