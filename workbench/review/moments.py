"""A record as a film: its events on a time axis, and the state at any moment, found in a fraction of a millisecond."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import accumulate
from pathlib import Path

import msgspec

from sessions.record.clock import Instant, parse_utc, utc_label
from sessions.record.events import Body, Event, Heartbeat
from sessions.record.fold import apply, instant_of
from sessions.record.log import read_log
from sessions.record.state import SessionState

CHECKPOINT = 64
"""A state is kept every so many events; the ones between are folded again from there, at most this many."""


class Moment(msgspec.Struct, frozen=True):
    """One place on the time axis and all that was known there."""

    position: int
    """Milliseconds since the session was opened; pauses included."""
    index: int
    """Of the last event that had happened."""
    event: Event
    state: SessionState
    now: Instant
    """What the clocks would have said."""

    @property
    def elapsed_ms(self) -> int:
        return self.state.elapsed_ms(self.now)


class Film:
    """All moments of one record."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events: list[Event] = []
        self.times: list[int] = []
        """Position of each event."""
        self._used: list[int] = []
        """Most session time used up to each event: seeking by it needs an axis that never falls."""
        self._checkpoints: list[SessionState] = []
        self._last: SessionState | None = None
        self.extend(events)

    @classmethod
    def read(cls, log: Path) -> Film:
        """Read a record's log.

        Raises:
            LogDamaged: its chain does not hold.
        """
        return cls(read_log(log).events)

    def extend(self, events: Sequence[Event]) -> None:
        """Add events at the end, for a record that still grows."""
        for event in events:
            since = instant_of(event).milliseconds_since(instant_of(self.events[-1])) if self.events else 0
            self.times.append((self.times[-1] if self.times else 0) + since)
            self._used.append(max(event.elapsed, self._used[-1] if self._used else 0))
            self._last = apply(self._last, event)
            if len(self.events) % CHECKPOINT == 0:
                self._checkpoints.append(self._last)
            self.events.append(event)

    @property
    def length(self) -> int:
        """Position of the last event."""
        return self.times[-1]

    def state_after(self, index: int) -> SessionState:
        """Return the state once event `index` had happened."""
        nearest = index // CHECKPOINT
        between = self.events[nearest * CHECKPOINT + 1 : index + 1]
        *_, state = accumulate(between, apply, initial=self._checkpoints[nearest])
        return state

    def at(self, position: int) -> Moment:
        """Return the moment at `position`, which is moved to the nearest end where it lies outside."""
        position = min(max(0, position), self.length)
        index = bisect_right(self.times, position) - 1
        return self._moment(position, index)

    def after(self, index: int) -> Moment:
        """Return the moment right after event `index`, even where others follow within the same millisecond."""
        index = min(max(0, index), len(self.events) - 1)
        return self._moment(self.times[index], index)

    def _moment(self, position: int, index: int) -> Moment:
        event = self.events[index]
        since = position - self.times[index]
        at = utc_label(parse_utc(event.at) + timedelta(milliseconds=since))
        now = Instant(event.boottime + since * 1_000_000, event.boot_id, at)
        return Moment(position, index, event, self.state_after(index), now)

    def at_elapsed(self, elapsed_ms: int) -> Moment:
        """Return the first moment at which so much session time was used, or the end."""
        index = bisect_left(self._used, elapsed_ms)
        if index >= len(self.events):
            return self.after(len(self.events) - 1)
        if index == 0 or self._used[index] == elapsed_ms:
            return self.after(index)
        short = elapsed_ms - self.after(index - 1).elapsed_ms
        # Before event `index`, even where rounding would put both into one millisecond.
        return self._moment(min(self.times[index - 1] + max(0, short), self.times[index]), index - 1)

    def next(self, index: int, wanted: Callable[[Body], bool]) -> int | None:
        """Return the first event after `index` of a wanted kind."""
        return next((n for n in range(index + 1, len(self.events)) if wanted(self.events[n].body)), None)

    def previous(self, index: int, wanted: Callable[[Body], bool]) -> int | None:
        """Return the last event before `index` of a wanted kind."""
        return next((n for n in range(index - 1, -1, -1) if wanted(self.events[n].body)), None)

    def next_happening(self, position: int) -> int | None:
        """Return when something happens after `position`; a heartbeat is nothing."""
        start = bisect_right(self.times, position)
        return next(
            (
                self.times[n]
                for n in range(start, len(self.events))
                if not isinstance(self.events[n].body, Heartbeat)
            ),
            None,
        )
