"""The score chart, drawn in braille: best-so-far as a step line, each scoring as a point, start and reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from environments.contract import Anchors, Direction, ScoreStatus
from sessions.record.state import ScoreRow
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Span, Tone, block
from workbench.ink.text import width

_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_HOUR = 3_600_000


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


class Zoom(StrEnum):
    """What part of the session the time axis shows."""

    SESSION = "whole session"
    SO_FAR = "so far"
    LAST_HOUR = "last hour"


class Chart(NamedTuple):
    """Everything a chart shows."""

    rows: Sequence[ScoreRow]
    direction: Direction
    anchors: Anchors | None
    budget_ms: int
    elapsed_ms: int
    counted: int | None = None
    """Number of the scoring that counts."""
    scale: Scale = Scale.LINEAR
    zoom: Zoom = Zoom.SESSION
    hidden: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """First and last millisecond on the time axis."""
        if self.zoom is Zoom.SO_FAR:
            return 0, max(60_000, self.elapsed_ms)
        if self.zoom is Zoom.LAST_HOUR:
            return max(0, self.elapsed_ms - _HOUR), max(60_000, self.elapsed_ms)
        return 0, max(60_000, self.budget_ms)

    @property
    def log(self) -> bool:
        """Whether the logarithm is asked for and every value has one."""
        return self.scale is Scale.LOG and all(value > 0 for value in self.values())

    def values(self) -> list[float]:
        found = [row.raw for row in self.rows if row.raw is not None]
        return found + ([self.anchors.start, self.anchors.reference] if self.anchors else [])

    def valid(self) -> list[ScoreRow]:
        """Scorings with a value, in the order in which they were asked for."""
        return [row for row in self.rows if row.raw is not None]


class _Axis(NamedTuple):
    """Value to dot row: 0 is the top."""

    low: float
    high: float
    dots: int
    log: bool

    def dot(self, value: float) -> int:
        at = math.log10(value) if self.log else value
        share = (at - self.low) / (self.high - self.low)
        return min(self.dots - 1, max(0, round((1 - share) * (self.dots - 1))))

    def value(self, dot: int) -> float:
        at = self.low + (1 - dot / (self.dots - 1)) * (self.high - self.low)
        return 10**at if self.log else at


class _Sheet:
    """Braille dots under glyphs, each cell with a tone."""

    def __init__(self, across: int, down: int) -> None:
        self.across, self.down = across, down
        self._dots = [[0] * across for _ in range(down)]
        self._tones: list[list[Tone]] = [[Tone.FAINT] * across for _ in range(down)]
        self._glyphs: list[list[str | None]] = [[None] * across for _ in range(down)]

    def dot(self, x: int, y: int, tone: Tone) -> None:
        if 0 <= x < self.across * 2 and 0 <= y < self.down * 4:
            self._dots[y // 4][x // 2] |= _BITS[x % 2][y % 4]
            self._tones[y // 4][x // 2] = tone

    def level(self, x0: int, x1: int, y: int, tone: Tone, *, step: int = 1) -> None:
        for x in range(min(x0, x1), max(x0, x1) + 1, step):
            self.dot(x, y, tone)

    def drop(self, x: int, y0: int, y1: int, tone: Tone) -> None:
        for y in range(min(y0, y1), max(y0, y1) + 1):
            self.dot(x, y, tone)

    def glyph(self, column: int, row: int, character: str, tone: Tone) -> None:
        if 0 <= column < self.across and 0 <= row < self.down:
            self._glyphs[row][column] = character
            self._tones[row][column] = tone

    def words(self, column: int, row: int, text: str, tone: Tone) -> None:
        for index, character in enumerate(text):
            self.glyph(column + index, row, character, tone)

    def free(self, column: int, row: int, length: int) -> bool:
        """Whether no glyph stands there and no best-so-far line runs through."""
        cells = range(max(0, column), min(self.across, column + length))
        return all(
            self._glyphs[row][x] is None
            and (self._tones[row][x] is not Tone.ACCENT or not self._dots[row][x])
            for x in cells
        )

    def line(self, row: int) -> Line:
        spans: list[Span] = []
        for glyph, dots, tone in zip(self._glyphs[row], self._dots[row], self._tones[row], strict=True):
            character = glyph or (chr(0x2800 + dots) if dots else " ")
            if spans and spans[-1][1] is tone:
                spans[-1] = (spans[-1][0] + character, tone)
            else:
                spans.append((character, tone))
        return tuple(spans)


def draw(chart: Chart, across: int, down: int) -> list[Line]:
    """Return the chart in exactly `down` lines of `across` cells, time labels on the last."""
    if across < 24 or down < 4:
        return block([], across, down)
    if chart.hidden:
        return block(_hidden(chart, across, down), across, down)
    values = chart.values()
    if not values:
        return block(_nothing_yet(across, down), across, down)
    axis = _axis_of(chart, values, (down - 1) * 4)
    ticks = _ticks(axis, down - 1)
    gutter = max(width(label) for label in ticks.values()) + 2
    sheet = _Sheet(across - gutter, down - 1)
    _draw_anchors(sheet, chart, axis)
    _draw_best(sheet, chart, axis)
    _draw_points(sheet, chart, axis)
    _label_anchors(sheet, chart, axis)
    lines = [_with_tick(ticks.get(row, ""), gutter, sheet.line(row)) for row in range(down - 1)]
    lines.append(_time_labels(chart, gutter, across))
    return block(lines, across, down)


def _with_tick(label: str, gutter: int, rest: Line) -> Line:
    mark = "┤" if label else "│"
    return ((label.rjust(gutter - 2) + " ", Tone.MUTED), (mark, Tone.FAINT), *rest)


def _axis_of(chart: Chart, values: list[float], dots: int) -> _Axis:
    seen = [math.log10(value) for value in values] if chart.log else values
    low, high = _without_outliers(seen, chart)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return _Axis(low - room, high + room, dots, chart.log)


def _without_outliers(seen: list[float], chart: Chart) -> tuple[float, float]:
    """Keep one wild score from flattening everything: show at most three times the range that matters."""
    anchored = [chart.anchors.start, chart.anchors.reference] if chart.anchors else []
    matter = [math.log10(value) for value in anchored] if chart.log else anchored
    best = [row.raw for row in _improvements(chart) if row.raw is not None]
    matter += [math.log10(value) for value in best] if chart.log else best
    low, high = min(matter or seen), max(matter or seen)
    reach = (high - low) or abs(high) * 0.1 or 1.0
    return max(min(seen), low - reach), min(max(seen), high + reach)


def _improvements(chart: Chart) -> list[ScoreRow]:
    best: list[ScoreRow] = []
    for row in chart.valid():
        if row.raw is not None and (not best or chart.direction.better(row.raw, best[-1].raw or 0.0)):
            best.append(row)
    return best


def _column(chart: Chart, elapsed_ms: int, dots: int) -> int:
    first, last = chart.span
    return round((elapsed_ms - first) / (last - first) * (dots - 1))


def _draw_anchors(sheet: _Sheet, chart: Chart, axis: _Axis) -> None:
    if chart.anchors:
        end = sheet.across * 2 - 1
        sheet.level(0, end, axis.dot(chart.anchors.start), Tone.MUTED, step=4)
        sheet.level(0, end, axis.dot(chart.anchors.reference), Tone.REFERENCE, step=3)


def _label_anchors(sheet: _Sheet, chart: Chart, axis: _Axis) -> None:
    if chart.anchors is None:
        return
    for name, value, tone in (
        ("reference", chart.anchors.reference, Tone.REFERENCE),
        ("start", chart.anchors.start, Tone.MUTED),
    ):
        text = f" {name} {words.raw(value)} "
        row = axis.dot(value) // 4
        for column in (sheet.across - len(text), sheet.across // 3, 1):
            if column >= 0 and sheet.free(column, row, len(text)):
                sheet.words(column, row, text, tone)
                break


def _draw_best(sheet: _Sheet, chart: Chart, axis: _Axis) -> None:
    """Draw the best so far from each improvement to the next, and to now."""
    best = _improvements(chart)
    dots = sheet.across * 2
    for index, row in enumerate(best):
        y = axis.dot(row.raw or 0.0)
        x = _column(chart, row.elapsed_ms, dots)
        until = best[index + 1].elapsed_ms if index + 1 < len(best) else chart.elapsed_ms
        end = _column(chart, until, dots)
        if end < 0:
            continue
        sheet.level(max(0, x), min(dots - 1, end), y, Tone.ACCENT)
        if index + 1 < len(best):
            sheet.drop(end, y, axis.dot(best[index + 1].raw or 0.0), Tone.ACCENT)


def _draw_points(sheet: _Sheet, chart: Chart, axis: _Axis) -> None:
    improving = {row.number for row in _improvements(chart)}
    for row in chart.rows:
        column = _column(chart, row.elapsed_ms, sheet.across * 2) // 2
        if row.raw is None:
            if row.status not in {None, ScoreStatus.CANCELLED}:
                sheet.glyph(column, sheet.down - 1, "×", Tone.BAD)
            continue
        at = axis.dot(row.raw) // 4
        if row.number == chart.counted:
            sheet.glyph(column, at, "★", Tone.STAR)
        else:
            sheet.glyph(column, at, "●" if row.number in improving else "○",
                        Tone.ACCENT if row.number in improving else Tone.TEXT)  # fmt: skip


def _ticks(axis: _Axis, rows: int) -> dict[int, str]:
    """Return text row -> label, about one label in four rows, at round values."""
    if axis.log:
        at = {round(index * (rows - 1) / 3) for index in range(4)}
        return {row: f"{axis.value(row * 4 + 2):.3g}" for row in sorted(at)}
    step = _round_step((axis.high - axis.low) / max(2, min(6, rows // 3)))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    value = math.ceil(axis.low / step) * step
    labels: dict[int, str] = {}
    while value <= axis.high:
        labels[axis.dot(value) // 4] = f"{value:.{decimals}f}".replace("-", "−")
        value += step
    return labels


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)


def _time_labels(chart: Chart, gutter: int, across: int) -> Line:
    """Return hours (or minutes) under their columns."""
    first, last = chart.span
    cells = across - gutter
    steps = (60_000, 300_000, 600_000, 900_000, 1_800_000, _HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR)
    step = next((one for one in steps if (last - first) / one <= max(2, cells // 8)), steps[-1])
    row = [" "] * across
    moment = -(-first // step) * step
    while moment <= last:
        label = words.short_time(moment)
        at = gutter + round((moment - first) / (last - first) * (cells - 1))
        start = min(across - len(label), max(gutter - 1, at - 1))
        if all(character == " " for character in row[max(0, start - 1) : start + len(label)]):
            row[start : start + len(label)] = label
        moment += step
    return (("".join(row), Tone.MUTED),)


def _hidden(chart: Chart, across: int, down: int) -> list[Line]:
    """Show when scores were taken and whether they were valid; nothing of their value."""
    sheet = _Sheet(across - 2, down - 1)
    middle = sheet.down // 2
    end = sheet.across * 2 - 1
    sheet.level(0, end, middle * 4 + 2, Tone.FAINT, step=3)
    for row in chart.rows:
        column = _column(chart, row.elapsed_ms, sheet.across * 2) // 2
        if row.status is ScoreStatus.VALID:
            sheet.glyph(column, middle, "●", Tone.ACCENT)
        elif row.status is not None:
            sheet.glyph(column, middle, "×", Tone.BAD)
    text = "scores are hidden: each mark is one call"
    if middle > 1:
        sheet.words(max(0, (sheet.across - len(text)) // 2), middle - 2, text, Tone.MUTED)
    lines: list[Line] = [(("  ", Tone.TEXT), *sheet.line(row)) for row in range(min(middle + 1, down - 1))]
    return [*lines, _time_labels(chart, 2, across)]


def _nothing_yet(across: int, down: int) -> list[Line]:
    text = "no score yet"
    return [EMPTY] * (down // 2 - 1) + [(((" " * ((across - len(text)) // 2)) + text, Tone.MUTED),)]
