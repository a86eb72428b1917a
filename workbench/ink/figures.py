"""How durations, scores and sizes are written, in the terminal, on the screen and in reports alike."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from workbench.ink.text import literal

_PARTS = re.compile(r"^(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?$")
DASH = "—"


def duration(ms: int) -> str:
    """Return `6:41:07`."""
    seconds = abs(ms) // 1000
    sign = "-" if ms < 0 and seconds else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def local_time(label: str) -> str:
    """Return a UTC label of the record in the reader's own time zone."""
    try:
        moment = datetime.strptime(label, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return literal(label)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


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
    return f"{value:+z.4f}" if sign else f"{value:z.4f}"


def size(count: float) -> str:
    """Return `1.4 GB`; powers of ten, as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
