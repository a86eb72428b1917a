"""What panels are drawn with: spans of text, each in a tone that the stylesheet gives its colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from workbench.ink.text import fit as fit_text
from workbench.ink.text import head, width


class Tone(StrEnum):
    """The closed set of ways text can look. Colour is never alone: words and shapes say the same."""

    TEXT = "text"
    STRONG = "strong"
    MUTED = "muted"
    FAINT = "faint"
    LABEL = "label"
    FOCUS = "focus"
    ACCENT = "accent"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    STAR = "star"
    REFERENCE = "reference"
    CURSOR = "cursor"
    CURSOR_IDLE = "cursor-idle"
    KEY = "key"
    FOUND = "found"
    CODE = "code"
    HEADING = "heading"
    BAND_INFO = "band-info"
    BAND_WARN = "band-warn"
    BAND_BAD = "band-bad"
    TRACK = "track"
    SPARK = "spark"


Span = tuple[str, Tone]
Line = tuple[Span, ...]

EMPTY: Line = ()


def line(*parts: Span | str) -> Line:
    """Return a line; bare strings are in the plain tone."""
    return tuple((part, Tone.TEXT) if isinstance(part, str) else part for part in parts)


def text_of(drawn: Line) -> str:
    return "".join(text for text, _ in drawn)


def cells(drawn: Line) -> int:
    """Return how many cells the line takes."""
    return sum(width(text) for text, _ in drawn)


def fit(drawn: Line, total: int) -> Line:
    """Return the line in exactly `total` cells: padded with blanks, or cut with an ellipsis."""
    fitted: list[Span] = []
    left = total
    for index, (text, tone) in enumerate(drawn):
        has = width(text)
        more = any(rest for rest, _ in drawn[index + 1 :])
        if has > left or (has == left and more):
            if left > 0:
                fitted.append((fit_text(text + ("  " if more else ""), left), tone))
            return tuple(fitted)
        fitted.append((text, tone))
        left -= has
    if left > 0:
        fitted.append((" " * left, Tone.TEXT))
    return tuple(fitted)


def folded(drawn: Line, total: int) -> list[Line]:
    """Return the line as as many lines of at most `total` cells as it takes."""
    if cells(drawn) <= total:
        return [drawn]
    lines: list[list[Span]] = [[]]
    left = total
    for text, tone in drawn:
        rest = text
        while rest:
            if left < width(rest[0]) and lines[-1]:
                lines.append([])
                left = total
            piece = head(rest, max(1, left))
            lines[-1].append((piece, tone))
            left -= width(piece)
            rest = rest[len(piece) :]
    return [tuple(one) for one in lines]


def beside(left: Line, right: Line, total: int) -> Line:
    """Return one line with `left` at its beginning and `right` at its end; the left gives way first."""
    right_cells = cells(right)
    if right_cells >= total:
        return fit(right, total)
    room = total - right_cells
    if cells(left) > room - 1:
        left = fit(left, room - 1)
    gap = " " * (room - cells(left))
    return (*left, (gap, Tone.TEXT), *right)


def heading(label: str, total: int, *, detail: str = "", right: Line = (), focused: bool = False) -> Line:
    """Return a panel's first line: its label, what it shows, and a rule to its end."""
    left: list[Span] = [(label, Tone.FOCUS if focused else Tone.LABEL)]
    if detail and width(label) + width(detail) + 4 < total - cells(right):
        left.append((f"  {detail}", Tone.MUTED))
    used = sum(width(text) for text, _ in left)
    end = cells(right) + (1 if right else 0)
    rule = total - used - 1 - end
    if rule > 0:
        left.append((" " + "─" * rule, Tone.FAINT))
    return fit((*left, (" ", Tone.TEXT), *right) if right else tuple(left), total)


def gauge(fraction: float, total: int, tone: Tone = Tone.ACCENT) -> Line:
    """Return a bar `total` cells long, filled up to `fraction`; never full before it is."""
    share = min(1.0, max(0.0, fraction))
    filled = total if share >= 1 else min(total - 1, round(share * total)) if total else 0
    if share > 0 and filled == 0 and total > 1:
        filled = 1
    return (("━" * filled, tone), ("─" * (total - filled), Tone.TRACK))


SPARKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], total: int, *, top: float = 100.0) -> str:
    """Return the last `total` values as bars; a missing one is a blank."""
    shown = list(values)[-total:]
    bars = "".join(_spark(value, top) for value in shown)
    return " " * (total - len(bars)) + bars


def _spark(value: float | None, top: float) -> str:
    if value is None:
        return " "
    share = min(1.0, max(0.0, value / top)) if top > 0 else 0.0
    return SPARKS[min(len(SPARKS) - 1, int(share * len(SPARKS)))]


def block(lines: Iterable[Line], total: int, height: int) -> list[Line]:
    """Return exactly `height` lines of exactly `total` cells."""
    fitted = [fit(drawn, total) for drawn in list(lines)[:height]]
    return fitted + [fit(EMPTY, total)] * (height - len(fitted))
