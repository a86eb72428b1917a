"""Words for the terminal: folded lines and aligned tables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

from workbench.ink.text import width as width_of

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def cells(text: str) -> int:
    """Return how many columns a terminal gives the text; colours take none."""
    return width_of(_ANSI.sub("", text))


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
