"""Decides what of a flood of output is recorded: a rate with a generous burst, and a budget for the whole."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What a recording may take."""

    bytes_per_second: int = 1 << 20
    burst_bytes: int = 64 << 20
    budget_bytes: int = 1 << 30
    quiet_seconds: float = 1.0
    """A flood is over when this long brought less than the rate."""


class FloodGate:
    """A token bucket that, once empty, stays shut until the flood is over: one gap a flood, not one a second."""

    def __init__(self, limits: Limits, now: int) -> None:
        self._limits = limits
        self._tokens = float(limits.burst_bytes)
        self._at = now
        self._spent = 0
        self._window_began = now
        self._window_bytes = 0
        self._shut = self._exhausted = False

    def admits(self, count: int, now: int) -> str | None:
        """Return None when `count` bytes may be recorded at `now` (ns), else why not."""
        limits = self._limits
        if self._exhausted or self._spent + count > limits.budget_bytes:
            self._exhausted = True
            return f"this recording's budget of {_size(limits.budget_bytes)} is used up"
        self._tokens = min(
            limits.burst_bytes, self._tokens + (now - self._at) / 1e9 * limits.bytes_per_second
        )
        self._at = now
        if self._shut and not self._flood_over(count, now):
            return self._why()
        if self._tokens < count:
            self._shut = True
            self._window_began, self._window_bytes = now, count
            return self._why()
        self._tokens -= count
        self._spent += count
        return None

    def _flood_over(self, count: int, now: int) -> bool:
        seconds = (now - self._window_began) / 1e9
        if seconds < self._limits.quiet_seconds:
            self._window_bytes += count
            return False
        over = self._window_bytes / seconds < self._limits.bytes_per_second
        self._window_began, self._window_bytes = now, count
        if over:
            self._shut = False
            self._tokens = max(self._tokens, min(self._limits.burst_bytes, 4.0 * count))
        return over

    def _why(self) -> str:
        rate = _size(self._limits.bytes_per_second)
        return f"output came faster than {rate} a second for too long to keep it all"


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"
