"""The score table: newest first, aligned, with a star on the one that counts."""

from __future__ import annotations

from environments.contract import ScoreStatus
from sessions.record.state import ScoreRow, SessionState
from workbench.ink import words
from workbench.ink.lines import Line, Span, Tone
from workbench.ink.text import fit, one_line
from workbench.tui.view import View
from workbench.tui.widgets.rows import Rows

ROOMY = 100
"""From this width on there is room for how long a scoring took."""


def columns(width: int, *, hidden: bool = False) -> dict[str, int]:
    """Return the columns shown and their widths; the note takes what is left."""
    shown = {"#": 5, "at": 7, "raw": 9}
    if not hidden:
        shown |= {"norm": 5, "change": 8}
    if width >= ROOMY:
        shown["took"] = 6
    if width >= 60:
        shown["snapshot"] = 8
    shown["note"] = max(0, width - sum(shown.values()) - 2 * len(shown) - 1)
    return shown


_NONE = "no score yet"
_RIGHT = {"#", "at", "raw", "norm", "change", "took"}


def title_line(width: int, *, hidden: bool = False) -> Line:
    spans: list[Span] = []
    for name, cells in columns(width, hidden=hidden).items():
        word = {"#": "  #", "raw": "status" if hidden else "raw"}.get(name, name)
        spans.append((_aligned(name, word, cells), Tone.MUTED))
        spans.append(("  ", Tone.TEXT))
    return tuple(spans[:-1])


def _aligned(column: str, text: str, cells: int) -> str:
    if column == "#":
        return fit(text, cells)
    return text.rjust(cells) if column in _RIGHT and len(text) <= cells else fit(text, cells)


def row_line(row: ScoreRow, state: SessionState, width: int) -> Line:
    """Return one scoring's line."""
    hidden = state.scores_hidden
    counts = not hidden and state.counted is not None and state.counted.number == row.number
    spans: list[Span] = []
    for name, cells in columns(width, hidden=hidden).items():
        text, tone = _cell(name, row, state, counts=counts)
        spans.append((_aligned(name, text, cells), tone))
        spans.append(("  ", Tone.TEXT))
    return tuple(spans[:-1])


def _cell(name: str, row: ScoreRow, state: SessionState, *, counts: bool) -> tuple[str, Tone]:  # noqa: PLR0911  (one column a line)
    valid = row.status is ScoreStatus.VALID
    quiet = Tone.TEXT if valid else Tone.MUTED
    match name:
        case "#":
            return f"{row.number:>3} {'★' if counts else ' '}", Tone.STAR if counts else quiet
        case "at":
            return ("start" if row.number == 0 else words.clock_time(row.elapsed_ms)), quiet
        case "raw" if row.raw is None or state.scores_hidden:
            return _status(row)
        case "raw":
            return words.raw(row.raw), Tone.STAR if counts else Tone.STRONG
        case "norm":
            return "" if row.normalised is None else words.normalised(row.normalised), quiet
        case "change":
            return words.change(row.change), words.change_tone(row.change, state.direction)
        case "took":
            return words.took(row.seconds) if row.seconds is not None else "", Tone.MUTED
        case "snapshot":
            return (row.commit or "")[:7], Tone.MUTED
        case _:
            return remark(row), Tone.TEXT if valid else Tone.MUTED


def _status(row: ScoreRow) -> tuple[str, Tone]:
    """Return what stands in the place of a value: how far it is, or why there is none."""
    if row.status is None:
        return ("running", Tone.ACCENT) if row.stage else ("queued", Tone.MUTED)
    return words.status(row.status), words.STATUS_TONES[row.status]


def remark(row: ScoreRow) -> str:
    """Return what the participant wrote, or why the score is none."""
    if row.status in {None, ScoreStatus.VALID}:
        return one_line(row.note) or ("starting solution" if row.number == 0 else "")
    message = one_line(row.message)
    note = one_line(row.note)
    return f"{message} · {note}" if note and message else message or note


class ScoreTable(Rows):
    """Rows of scorings under their titles."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id, chooses=True)
        self._numbers: list[int] = []

    def fixed(self, view: View, width: int) -> list[Line]:
        return [title_line(width, hidden=view.state.scores_hidden)]

    def scrolling(self, view: View, width: int) -> list[Line]:
        rows = list(reversed(view.state.scores))
        self._follow_cursor(len(rows))
        self._numbers = [row.number for row in rows]
        return [row_line(row, view.state, width) for row in rows] or [
            ((_NONE + (": press s when there is something to score" if view.can_act else ""), Tone.MUTED),)
        ]

    def _follow_cursor(self, count: int) -> None:
        """Keep the cursor on the scoring it was on; on the newest if it was there."""
        if self.cursor and count > len(self._numbers):
            self.cursor += count - len(self._numbers)

    def number_at(self, index: int) -> int | None:
        """Return the number of the scoring on a row."""
        return self._numbers[index] if 0 <= index < len(self._numbers) else None
