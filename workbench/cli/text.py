"""Words and figures for the terminal: outside text shown literally, durations, numbers, plain tables."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PARTS = re.compile(r"^(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?$")
DASH = "—"


def literal(text: str) -> str:
    """Return outside text so that a terminal draws it and obeys nothing in it; line ends and tabs stay."""
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


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


def duration(ms: int) -> str:
    """Return `6:41:07`."""
    seconds = abs(ms) // 1000
    sign = "-" if ms < 0 and seconds else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_duration(text: str) -> int:
    """Read `1:33:00`, `33:00`, `1h30m`, `90m`, `45s`, with a sign or without, as milliseconds.

    Raises:
        ValueError: it is none of these.
    """
    sign, bare = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if re.fullmatch(r"\d+(:\d{1,2}){1,2}", bare):
        seconds = 0.0
        for part in bare.split(":"):
            seconds = seconds * 60 + int(part)
    elif bare and (match := _PARTS.match(bare.replace(" ", ""))):
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    else:
        raise ValueError(f"{text!r} is no duration; write 1:33:00, 90m, 1h30m or 45s")
    return sign * round(seconds * 1000)


def figure(value: float | None, *, sign: bool = False) -> str:
    """Return a score with four decimals, or a dash for none."""
    if value is None:
        return DASH
    return f"{value:+.4f}" if sign else f"{value:.4f}"


def size(count: float) -> str:
    """Return `1.4 GB`; powers of ten, as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


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
