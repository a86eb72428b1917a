"""Middle, uncertainty and quiet stretches of repeated timings."""

from __future__ import annotations

import math
import random
import statistics

from hypothesis import given
from hypothesis import strategies as st

from environments.triton_cumsum.timing.spread import Spread, quietest, ratio, relative_error_of_median

positive = st.floats(0.001, 1e6, allow_nan=False)


def test_the_error_of_a_median_shrinks_like_the_root_of_the_count() -> None:
    chance = random.Random(1)
    draws = [chance.gauss(100, 5) for _ in range(4000)]
    few = statistics.mean(relative_error_of_median(draws[i : i + 20]) for i in range(0, 2000, 20))
    many = statistics.mean(relative_error_of_median(draws[i : i + 320]) for i in range(0, 3840, 320))
    assert 3 < few / many < 5.5
    # One standard error of a normal sample's median is 1.2533 sigma / sqrt(n).
    assert 0.7 < few / (1.2533 * 0.05 / math.sqrt(20)) < 1.4


def test_a_few_disturbed_timings_do_not_make_a_median_uncertain() -> None:
    calm = [7.0 + 0.001 * i for i in range(40)]
    disturbed = [*calm[:-4], 70.0, 80.0, 90.0, 700.0]
    assert relative_error_of_median(disturbed) < 0.001


def test_two_timings_say_nothing_of_the_error() -> None:
    assert relative_error_of_median([1.0, 1.0]) == math.inf


@given(st.lists(positive, min_size=3))
def test_a_spread_keeps_its_order(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.least <= spread.median <= spread.most
    assert spread.error >= 0
    assert spread.count == len(values)


@given(st.lists(positive, min_size=1), st.integers(1, 8))
def test_the_quietest_stretch_lies_between_the_least_and_the_median_of_all(
    values: list[float], block: int
) -> None:
    quiet = quietest(values, block)
    assert min(values) <= quiet <= max(values)


def test_the_quietest_stretch_is_found_between_noisy_ones() -> None:
    noisy = [9.0, 12.0, 11.0, 30.0, 10.0]
    assert quietest([*noisy, 7.0, 7.1, 7.2, 7.0, 7.1, *noisy], 5) == 7.1


def test_a_ratio_is_taken_pair_by_pair() -> None:
    drifting = [1.0, 2.0, 4.0]
    assert ratio([3 * d for d in drifting], drifting).median == 3.0
