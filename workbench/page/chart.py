"""The course of a session's scores as an SVG drawing: points, best so far, start and reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from environments.contract import Anchors, Direction
from sessions.record.state import ScoreRow
from workbench.ink.figures import duration, figure

WIDTH, HEIGHT = 880, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 84, 16, 34


class _Scale:
    """Maps session time and raw scores to the drawing."""

    def __init__(self, budget_ms: int, low: float, high: float) -> None:
        self.budget_ms = max(1, budget_ms)
        pad = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
        self.low, self.high = low - pad, high + pad

    def x(self, elapsed_ms: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * elapsed_ms / self.budget_ms

    def y(self, raw: float) -> float:
        share = (raw - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def score_chart(
    rows: Sequence[ScoreRow], anchors: Anchors | None, direction: Direction, budget_ms: int, label: str
) -> str:
    """Return the drawing, or a sentence where there is nothing to draw."""
    valid = [row for row in rows if row.raw is not None]
    if not valid:
        return "<p>No valid score.</p>"
    values = [row.raw for row in valid if row.raw is not None]
    lines = [] if anchors is None else [anchors.start, anchors.reference]
    scale = _Scale(budget_ms, min(values + lines), max(values + lines))
    parts = [
        *_axes(scale, label),
        *_anchor_lines(scale, anchors),
        _best_line(scale, valid, direction, min(budget_ms, max(row.elapsed_ms for row in rows))),
        *_points(scale, rows, direction),
    ]
    title = escape(f"{label}, {direction} is better")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="scores over session time: {title}">'
        f"{''.join(parts)}</svg>"
    )


def _axes(scale: _Scale, label: str) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    yield f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}"/>'
    for value in _ticks(scale.low, scale.high):
        y = scale.y(value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for elapsed in _time_ticks(scale.budget_ms):
        yield f'<text x="{scale.x(elapsed):.1f}" y="{bottom + 18}" text-anchor="middle">{duration(elapsed)}</text>'
    yield f'<text class="label" x="{LEFT}" y="{TOP - 4}">{escape(label)}</text>'


MINUTES = (0.25, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 480, 720, 1440)


def _time_ticks(span_ms: int) -> range:
    """Return at most six round times from the start on."""
    wanted = span_ms / 5
    step = next((int(m * 60_000) for m in MINUTES if m * 60_000 >= wanted), math.ceil(wanted))
    return range(0, span_ms + 1, step)


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round values between the ends."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]


def _anchor_lines(scale: _Scale, anchors: Anchors | None) -> Iterator[str]:
    if anchors is None:
        return
    for name, value in (("start", anchors.start), ("reference", anchors.reference)):
        y = scale.y(value)
        yield f'<line class="anchor {name}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="{name}" x="{WIDTH - RIGHT + 6}" y="{y + 4:.1f}">{name}</text>'


def _best_line(scale: _Scale, valid: Sequence[ScoreRow], direction: Direction, until_ms: int) -> str:
    points: list[str] = []
    best: float | None = None
    for row in valid:
        assert row.raw is not None
        x = scale.x(row.elapsed_ms)
        if best is not None:
            points.append(f"{x:.1f},{scale.y(best):.1f}")
        if best is None or direction.better(row.raw, best):
            best = row.raw
        points.append(f"{x:.1f},{scale.y(best):.1f}")
    assert best is not None
    points.append(f"{scale.x(until_ms):.1f},{scale.y(best):.1f}")
    return f'<polyline class="best" points="{" ".join(points)}"/>'


def _points(scale: _Scale, rows: Sequence[ScoreRow], direction: Direction) -> Iterator[str]:
    worst = scale.high if direction is Direction.LOWER else scale.low
    for row in rows:
        x = scale.x(row.elapsed_ms)
        status = row.status.value if row.status else "not finished"
        title = escape(f"#{row.number} at {duration(row.elapsed_ms)}: {figure(row.raw)} {status} {row.note}")
        if row.raw is None:
            y = scale.y(worst)
            yield f'<text class="invalid" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">×<title>{title}</title></text>'
        else:
            yield f'<circle class="score" cx="{x:.1f}" cy="{scale.y(row.raw):.1f}" r="4"><title>{title}</title></circle>'
