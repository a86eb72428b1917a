"""Strings from outside, shown literally in a known number of cells."""

from __future__ import annotations

import re
from functools import lru_cache

from environments.literal import literal
from environments.literal import plain as _plain

__all__ = ["broken", "cut", "fit", "head", "lines_of", "literal", "one_line", "plain", "width", "wrap"]

# Nearly everything we draw: one cell each. Only what is beyond asks rich, which is then imported.
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u2319\u2500-\u25fc\u2600-\u2613\u2713-\u2718]*"
)
LINE_CHARACTERS = 4_000
"""Longer lines are cut before any work is done on them; no screen is that wide."""


@lru_cache(2048)
def plain(text: str) -> str:
    """Return `text` as one literal line: nothing in it is obeyed or moves the cursor."""
    return _plain(text[:LINE_CHARACTERS])


def lines_of(text: str) -> list[str]:
    """Split outside text at its line ends; each line is plain."""
    return [plain(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def one_line(text: str, cells: int | None = None) -> str:
    """Return outside text on one line, its line ends shown as blanks, in at most `cells` cells."""
    line = plain(" ".join(text[:LINE_CHARACTERS].split()))
    return line if cells is None else cut(line, cells)


def _narrow(text: str) -> bool:
    return text.isascii() or _NARROW.fullmatch(text) is not None


def width(text: str) -> int:
    """Return the number of terminal cells."""
    if _narrow(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, cells: int) -> str:
    """Return `text` in exactly `cells` cells: padded, or cut with an ellipsis."""
    if cells <= 0:
        return ""
    has = width(text)
    if has <= cells:
        return text + " " * (cells - has)
    if _narrow(text):
        return text[: cells - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, cells - 1) + "…"


def cut(text: str, cells: int) -> str:
    """Return `text` in at most `cells` cells, with an ellipsis where it was cut."""
    return text if width(text) <= cells else fit(text, cells)


def wrap(text: str, cells: int) -> list[str]:
    """Wrap one plain line at blanks, breaking words only where they are wider than the line."""
    if cells <= 0:
        return []
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if width(candidate) <= cells:
            line = candidate
            continue
        if line:
            lines.append(line)
        *pieces, line = broken(word, cells)
        lines += pieces
    lines.append(line)
    return lines


def broken(word: str, cells: int) -> list[str]:
    """Break a word that is wider than a line; the last piece may be empty."""
    pieces = []
    rest = word
    while width(rest) > cells:
        piece = head(rest, cells)
        pieces.append(piece)
        rest = rest[len(piece) :]
    return [*pieces, rest]


def head(word: str, cells: int) -> str:
    """Return as many leading characters as fit, at least one."""
    end = min(len(word), cells)
    while end > 1 and width(word[:end]) > cells:
        end -= 1
    while end < len(word) and width(word[: end + 1]) <= cells:
        end += 1
    return word[: max(1, end)]
