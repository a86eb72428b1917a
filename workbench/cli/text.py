"""Words for the terminal: outside text shown literally, folded lines, plain tables."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def literal(text: str) -> str:
    """Return outside text so that a terminal draws it and obeys nothing in it; line ends and tabs stay."""
    return CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<{code:04x}>"


def one_line(text: str, width: int | None = None) -> str:
    """Return outside text on one line, cut to `width` cells."""
    flat = " ".join(literal(text).split())
    return flat if width is None else cut(flat, width)


def cells(text: str) -> int:
    """Return how many columns a terminal gives the text; colours take none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in _ANSI.sub("", text)
    )


def cut(text: str, width: int) -> str:
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def fold(text: str, hang: int = 0, *, err: bool = False, width: int | None = None) -> str:
    """Break lines at blanks where a terminal reads them, the rest set in by `hang`; elsewhere nothing changes."""
    wide = width or terminal_width(err=err)
    if wide is None or wide <= hang + 20:
        return text
    return "\n".join(_folded(line, hang, wide) for line in text.split("\n"))


def terminal_width(*, err: bool = False) -> int | None:
    """Return the columns of the terminal that reads standard output or error; none where it is no terminal."""
    try:
        return os.get_terminal_size((sys.stderr if err else sys.stdout).fileno()).columns or None
    except (OSError, ValueError, AttributeError):
        return None


def _folded(line: str, hang: int, wide: int) -> str:
    lines, current = [], ""
    for part in re.findall(r" *[^ ]+| +$", line):
        if current.strip() and cells(current + part) > wide:
            lines.append(current)
            current = " " * hang + part.lstrip(" ")
        else:
            current += part
    return "\n".join([*lines, current])


def local_time(label: str) -> str:
    """Return a UTC label of the record in the reader's own time zone."""
    try:
        moment = datetime.strptime(label, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return literal(label)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def bar(fraction: float, width: int = 12) -> str:
    """Return `▰▰▱▱`."""
    full = round(min(1.0, max(0.0, fraction)) * width)
    return "▰" * full + "▱" * (width - full)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "", indent: str = "") -> str:
    """Return an aligned table; `right` names the headers whose column is set to the right, separated by `|`."""
    from click import style

    lines = [list(row) for row in rows]
    widths = [max(cells(cell) for cell in column) for column in zip(headers, *lines, strict=True)]
    to_right = set(right.split("|"))

    def line(row: Sequence[str]) -> str:
        parts = []
        for header, cell, width in zip(headers, row, widths, strict=True):
            space = " " * (width - cells(cell))
            parts.append(space + cell if header in to_right else cell + space)
        return (indent + "  ".join(parts)).rstrip()

    return "\n".join([style(line(headers), dim=True), *map(line, lines)])
