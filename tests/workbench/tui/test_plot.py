"""The chart: best-so-far never rises, lines stand where they are said to, hidden scores stay hidden."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from environments.contract import Anchors, Direction, ScoreStatus
from sessions.record.state import ScoreRow
from workbench.ink.lines import text_of
from workbench.tui.plot import Chart, Scale, Zoom, draw

ANCHORS = Anchors(start=1.8142, reference=1.1314, hardware="any", source="measured")
HOURS = 3_600_000


def row(number: int, minutes: float, raw: float | None) -> ScoreRow:
    status = ScoreStatus.INVALID if raw is None else ScoreStatus.VALID
    return ScoreRow(number, "2026-01-01T00:00:00.000Z", round(minutes * 60_000), status=status, raw=raw)


def chart(*rows: ScoreRow, **changes: object) -> Chart:
    values: dict[str, object] = {
        "rows": rows,
        "direction": Direction.LOWER,
        "anchors": ANCHORS,
        "budget_ms": 8 * HOURS,
        "elapsed_ms": 4 * HOURS,
    }
    return Chart(**(values | changes))  # type: ignore[arg-type]


def drawn(of: Chart, width: int = 80, height: int = 16) -> str:
    return "\n".join(text_of(one).rstrip() for one in draw(of, width, height))


FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=150, deadline=None)
@given(
    raws=st.lists(st.one_of(st.none(), FLOATS), max_size=12),
    size=st.tuples(st.integers(1, 140), st.integers(1, 40)),
    direction=st.sampled_from(Direction),
    scale=st.sampled_from(Scale),
    zoom=st.sampled_from(Zoom),
    anchored=st.booleans(),
    hidden=st.booleans(),
)
def test_any_scores_are_drawn_in_exactly_the_cells_there_are(
    raws: list[float | None],
    size: tuple[int, int],
    direction: Direction,
    scale: Scale,
    zoom: Zoom,
    anchored: bool,
    hidden: bool,
) -> None:
    rows = [row(number, number * 7, raw) for number, raw in enumerate(raws)]
    of = chart(
        *rows,
        direction=direction,
        scale=scale,
        zoom=zoom,
        anchors=ANCHORS if anchored else None,
        hidden=hidden,
    )
    lines = draw(of, *size)
    assert len(lines) == size[1]
    assert {cell_len(text_of(one)) for one in lines} == {size[0]}


def test_start_and_reference_are_lines_with_their_values() -> None:
    text = drawn(chart(row(0, 0, 1.8142), row(1, 30, 1.5)))
    assert "start 1.8142" in text
    assert "reference 1.1314" in text


def test_the_score_that_counts_has_a_star_and_an_invalid_one_a_cross() -> None:
    text = drawn(chart(row(0, 0, 1.8142), row(1, 30, 1.5), row(2, 60, None), counted=1))
    assert text.count("★") == 1
    assert text.count("×") == 1


def test_a_score_that_does_not_improve_is_an_open_circle_off_the_line() -> None:
    text = drawn(chart(row(0, 0, 1.8142), row(1, 30, 1.4), row(2, 90, 1.6)))
    assert text.count("○") == 1
    assert text.count("●") == 2


def test_one_wild_score_does_not_flatten_the_rest() -> None:
    text = drawn(chart(row(0, 0, 1.8142), row(1, 30, 1.4), row(2, 90, 5_000.0)))
    rows_with_points = [number for number, one in enumerate(text.split("\n")) if "●" in one or "○" in one]
    assert len(rows_with_points) >= 3


def test_a_logarithm_is_refused_where_a_value_has_none() -> None:
    assert chart(row(0, 0, 4.0), scale=Scale.LOG).log
    assert not chart(row(0, 0, -0.4), scale=Scale.LOG).log


def test_hidden_scores_show_calls_and_no_value() -> None:
    text = drawn(chart(row(0, 0, 1.8142), row(1, 30, 1.2345), row(2, 60, None), hidden=True, counted=1))
    assert "1.2345" not in text
    assert "1.8142" not in text
    assert "reference" not in text
    assert "★" not in text
    assert text.count("●") == 2
    assert text.count("×") == 1


def test_zooming_to_the_last_hour_moves_the_axis() -> None:
    text = drawn(chart(row(0, 0, 1.8), row(1, 200, 1.4), zoom=Zoom.LAST_HOUR))
    assert "3:00" in text
    assert "0:00" not in text.split("\n")[-1]
