"""Falls back to ASCII where a terminal cannot show more: one filter over everything that is drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_ASCII = {
    "●": "o", "○": ".", "★": "*", "×": "x", "▲": "!", "■": "#", "◆": "#", "✓": "+", "…": "~", "—": "-",
    "–": "-", "−": "-", "·": "-", "│": "|", "┤": "+", "─": "-", "━": "=", "›": ">", "‹": "<", "→": ">",
    "↑": "^", "↓": "v", "▸": ">", "▾": "v", "▀": '"', "▄": "_", "█": "#", "▌": "|", "▐": "|", "▎": "|",
    "▁": "_", "▂": "_", "▃": "-", "▅": "-", "▆": "=", "▇": "#", "•": "*", "“": '"', "”": '"', "’": "'", "‘": "'",
    "°": " ", "≥": ">", "≤": "<", "µ": "u", "Δ": "d", "⏸": "=", "▶": ">", "␛": "^", "↵": "/", "┆": ":", "║": "|",
}  # fmt: skip
_FIRST_BRAILLE, _LAST_BRAILLE = 0x2800, 0x28FF


@lru_cache(4096)
def ascii_for(character: str) -> str:
    """Return what stands for one character, in as many cells."""
    if character.isascii():
        return character
    if _FIRST_BRAILLE <= ord(character) <= _LAST_BRAILLE:
        return _for_dots(ord(character) - _FIRST_BRAILLE)
    return _ASCII.get(character) or "?" * cell_len(character)


def _for_dots(dots: int) -> str:
    """Return the ASCII mark nearest to a braille cell: high, middle, low, or upright."""
    if not dots:
        return " "
    rows = [bool(dots & mask) for mask in (0x09, 0x12, 0x24, 0xC0)]
    if sum(rows) > 2:
        return "|"
    if rows[0]:
        return "'"
    return "." if rows[3] else "-"


def plain_ascii(text: str) -> str:
    """Return text in ASCII, cell for cell."""
    return text if text.isascii() else "".join(map(ascii_for, text))


class AsciiOnly(LineFilter):
    """Replaces every character beyond ASCII just before it is written."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(plain_ascii(text), style, control) for text, style, control in segments]


def speaks_unicode(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal's locale is UTF-8; `REBENCH_ASCII=1` says no."""
    if environ.get("REBENCH_ASCII"):
        return False
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if environ.get("TERM") in {"linux", "vt100", "vt220", "dumb"}:
        return False
    return locale == "" or "UTF-8" in locale.upper() or "UTF8" in locale.upper()
