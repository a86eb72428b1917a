"""How durations, scores and sizes are written."""

from __future__ import annotations

import pytest

from workbench.ink.figures import DASH, duration, figure, parse_duration, size


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("1:33:00", 5_580_000),
        ("33:00", 1_980_000),
        ("1h30m", 5_400_000),
        ("90m", 5_400_000),
        ("+45s", 45_000),
        ("-0:10", -10_000),
    ],
)
def test_a_duration_is_read_as_people_write_it(written: str, milliseconds: int) -> None:
    assert parse_duration(written) == milliseconds


@pytest.mark.parametrize("written", ["", "soon", "1:2:3:4", "10", "1h:30", "--5m"])
def test_what_is_no_duration_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(ValueError, match="write 1:33:00"):
        parse_duration(written)


@pytest.mark.parametrize("milliseconds", [0, 999, 59_000, 24_067_000, -61_000])
def test_a_written_duration_is_read_as_its_whole_seconds(milliseconds: int) -> None:
    assert parse_duration(duration(milliseconds)) == int(milliseconds / 1000) * 1000


def test_sizes_count_in_powers_of_ten() -> None:
    assert [size(n) for n in (0, 999, 4_100, 70.2e9, 3e13)] == [
        "0 B",
        "999 B",
        "4.1 kB",
        "70.2 GB",
        "30.0 TB",
    ]


def test_nothing_has_no_sign() -> None:
    assert figure(-0.00001) == "0.0000"
    assert figure(-0.00001, sign=True) == "+0.0000"


def test_a_score_has_four_decimals_and_none_is_a_dash() -> None:
    assert [figure(1.5), figure(-0.11, sign=True), figure(0.02, sign=True), figure(None)] == [
        "1.5000",
        "-0.1100",
        "+0.0200",
        DASH,
    ]
