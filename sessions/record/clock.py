"""Time as the record knows it: boot-time differences for durations, UTC labels for people."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Instant(msgspec.Struct, frozen=True):
    """One reading of the clocks, all at the same moment."""

    boottime: int
    """Nanoseconds since boot, suspended time included."""
    boot_id: str
    """Changes with every boot; differences of `boottime` hold only within one."""
    at: str
    """UTC, ISO 8601 with milliseconds: a label, never subtracted except across boots."""

    def milliseconds_since(self, earlier: Instant) -> int:
        """Return whole milliseconds from `earlier` to here.

        Within one boot the boot-time clock decides; across boots only the wall clock is left, and a
        step backwards counts as nothing.
        """
        if self.boot_id == earlier.boot_id:
            return max(0, self.boottime - earlier.boottime) // 1_000_000
        return max(0, round((parse_utc(self.at) - parse_utc(earlier.at)) / timedelta(milliseconds=1)))


class Clock(Protocol):
    """Whatever can say what time it is."""

    def now(self) -> Instant: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> Instant:
        boottime = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return Instant(time.clock_gettime_ns(boottime), boot_id(), utc_label(datetime.now(UTC)))


class ManualClock:
    """A clock that moves when told to, for tests."""

    def __init__(self, at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._boottime = 1_000_000_000_000
        self._wall = at
        self._boot_id = "boot-1"

    def now(self) -> Instant:
        return Instant(self._boottime, self._boot_id, utc_label(self._wall))

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._boottime += round(seconds * 1e9)
        self._wall += timedelta(seconds=seconds)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forwards or back, as NTP or a person would."""
        self._wall += timedelta(seconds=seconds)

    def reboot(self, seconds_away: float) -> None:
        """Come back after a boot: a new boot id and a boot-time clock that starts again."""
        self._boottime = 5_000_000_000
        self._wall += timedelta(seconds=seconds_away)
        self._boot_id = f"boot-{uuid4().hex[:8]}"


@cache
def boot_id() -> str:
    """Return the kernel's id of this boot, or a constant where it has none (replay on macOS)."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return "unknown-boot"


def utc_label(moment: datetime) -> str:
    """Return `2026-01-31T09:30:00.000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def parse_utc(label: str) -> datetime:
    """Read what `utc_label` wrote."""
    return datetime.strptime(label, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
