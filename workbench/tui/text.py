"""Makes any string from outside safe to show: literally, on one line, in a known number of cells."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

LINE_CHARACTERS = 4_000
"""Longer lines are cut before any work is done on them; no screen is that wide."""
_TAB = "    "
_REPLACEMENT = "\ufffd"


@lru_cache(4096)
def _shown(character: str) -> str:
    """Return what stands for one character: itself, its control picture, or a replacement."""
    code = ord(character)
    if character == "\t":
        return _TAB
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    category = unicodedata.category(character)
    # Format characters reorder or join what stands around them; unassigned ones have no known width.
    if category in {"Cc", "Cs", "Cn", "Co"}:
        return _REPLACEMENT
    # Variation selectors change how wide terminals think a character is, each in its own way.
    if category == "Cf" or 0xFE00 <= code <= 0xFE0F:
        return ""
    if category in {"Zl", "Zp"}:
        return " "
    return character


@lru_cache(2048)
def plain(text: str) -> str:
    """Return `text` as one literal line: no controls, no escapes, no surrogates, nothing that moves the cursor."""
    cut = text[:LINE_CHARACTERS]
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_shown(character) for character in cut)


def lines_of(text: str) -> list[str]:
    """Split outside text at its line ends; each line is plain."""
    return [plain(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def one_line(text: str) -> str:
    """Return outside text on one line, its line ends shown as blanks."""
    return plain(" ".join(text[:LINE_CHARACTERS].split()))


def width(text: str) -> int:
    """Return the number of terminal cells."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, cells: int) -> str:
    """Return `text` in exactly `cells` cells: padded, or cut with an ellipsis."""
    if cells <= 0:
        return ""
    has = width(text)
    if has <= cells:
        return text + " " * (cells - has)
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
