"""How numbers, times and statuses are put into words, the same everywhere on the screen."""

from __future__ import annotations

from environments.contract import Direction, ScoreStatus
from workbench.ink.figures import DASH, duration
from workbench.ink.lines import Tone

MISSING = DASH


def clock_time(milliseconds: int) -> str:
    """Return `6:41:07`; minutes and seconds always have two digits."""
    return duration(max(0, milliseconds))


def countdown(milliseconds: int) -> str:
    """Return time left, rounded up to a whole second, so that 0:00:00 means nothing is left."""
    return clock_time(-(-max(0, milliseconds) // 1000) * 1000)


def short_time(milliseconds: int) -> str:
    """Return `1:18` for hours and minutes."""
    minutes = max(0, milliseconds) // 60_000
    return f"{minutes // 60}:{minutes % 60:02d}"


def spoken_time(milliseconds: int) -> str:
    """Return `8 h`, `1 h 30 min`, `25 min`, `40 s`."""
    seconds = max(0, milliseconds) // 1000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def took(seconds: float | None) -> str:
    """Return how long something took: `0.4 s`, `38 s`, `2:05`."""
    if seconds is None:
        return MISSING
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def raw(value: float | None) -> str:
    """Return a raw score with four decimals, or in six figures where it is large or tiny."""
    if value is None:
        return MISSING
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.4f}".replace("-", "−")
    return f"{value:.5g}".replace("-", "−")


def normalised(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}" if abs(value) < 1000 else f"{value:.3g}"


def change(value: float | None) -> str:
    """Return a signed change: `−0.1100`, `+0.0200`."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    sign = "−" if value < 0 else "+"
    size = abs(value)
    return sign + (f"{size:.4f}" if 0.0001 <= size < 1000 else f"{size:.2g}")


def change_tone(value: float | None, direction: Direction) -> Tone:
    if value is None or value == 0:
        return Tone.MUTED
    return Tone.GOOD if direction.better(value, 0.0) else Tone.WARN


def status(of: ScoreStatus | None) -> str:
    return "…" if of is None else STATUS_WORDS[of]


STATUS_WORDS = {
    ScoreStatus.VALID: "valid",
    ScoreStatus.INVALID: "invalid",
    ScoreStatus.TIMEOUT: "timeout",
    ScoreStatus.OUT_OF_MEMORY: "no memory",
    ScoreStatus.CRASHED: "crashed",
    ScoreStatus.INFRASTRUCTURE: "our fault",
    ScoreStatus.CANCELLED: "cancelled",
}
STATUS_TONES = {
    ScoreStatus.VALID: Tone.TEXT,
    ScoreStatus.INVALID: Tone.BAD,
    ScoreStatus.TIMEOUT: Tone.BAD,
    ScoreStatus.OUT_OF_MEMORY: Tone.BAD,
    ScoreStatus.CRASHED: Tone.BAD,
    ScoreStatus.INFRASTRUCTURE: Tone.WARN,
    ScoreStatus.CANCELLED: Tone.MUTED,
}


def better(direction: Direction) -> str:
    return "lower is better" if direction is Direction.LOWER else "higher is better"


def gigabytes(size: float | None) -> str:
    """Return bytes as GB (10^9), one decimal under ten."""
    if size is None:
        return "N/A"
    amount = size / 1e9
    return f"{amount:.1f}" if amount < 10 else f"{amount:.0f}"


def count(number: int, noun: str) -> str:
    """Return `1 file`, `3 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
