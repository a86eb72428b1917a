"""The chained log: append-only, one event a line, each naming the SHA-256 of the line before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from sessions.record.clock import Clock
from sessions.record.events import Body, Event, EventUnreadable, decode, encode
from sessions.record.fold import EventImpossible, apply
from sessions.record.log_copy import LogCopy
from sessions.record.state import SessionState

FIRST_PREV = "0" * 64


class LogDamaged(Exception):
    """The log breaks its own rules; the message names the first bad line."""


class LogContents(msgspec.Struct, frozen=True):
    """What a log holds."""

    events: tuple[Event, ...]
    torn: bytes
    """A half-written last line, dropped; empty when there is none."""
    sound_bytes: int
    """Length of the file up to the last whole line."""
    head: str
    """SHA-256 of the last whole line."""


def lines_of(data: bytes) -> tuple[list[bytes], bytes]:
    """Split a log into whole lines and the torn rest."""
    *whole, torn = data.split(b"\n")
    return whole, torn


def iter_chain(lines: list[bytes]) -> Iterator[tuple[Event, str]]:
    """Yield each event with the SHA-256 of its line.

    Raises:
        LogDamaged: a line is unreadable, out of order, or does not name the line before it.
    """
    prev = FIRST_PREV
    for number, line in enumerate(lines):
        try:
            event = decode(line)
        except EventUnreadable as error:
            raise LogDamaged(f"line {number + 1} of the log cannot be read: {error}") from error
        if event.seq != number:
            raise LogDamaged(
                f"line {number + 1} of the log has seq {event.seq} where {number} belongs: "
                "an event was removed, added or moved"
            )
        if event.prev != prev:
            raise LogDamaged(
                f"the chain breaks at seq {number} ({event.kind}): it names {event.prev[:12]} as the line "
                f"before it, which hashes to {prev[:12]}: line {number} was changed after it was written"
            )
        prev = sha256(line).hexdigest()
        yield event, prev


def read_log(path: Path) -> LogContents:
    """Read a whole log, checking the chain.

    Raises:
        LogDamaged: the chain does not hold.
    """
    data = path.read_bytes()
    whole, torn = lines_of(data)
    events: list[Event] = []
    head = FIRST_PREV
    for event, digest in iter_chain(whole):
        events.append(event)
        head = digest
    return LogContents(tuple(events), torn, len(data) - len(torn), head)


Subscriber = Callable[[Event, bytes], None]


class Journal:
    """The log of a live session and the state folded from it: the one place that appends.

    An event is written, flushed and on disk before any subscriber hears of it.
    """

    def __init__(self, path: Path, clock: Clock, *, copy_to: Path | None = None) -> None:
        self._path = path
        self._clock = clock
        self._subscribers: list[Subscriber] = []
        self._state: SessionState | None = None
        self._lines: list[bytes] = []
        self.torn = b""
        self._head = FIRST_PREV
        self._next_seq = 0
        if path.exists():
            self._load()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self.copy = None if copy_to is None else LogCopy(path, copy_to)

    def _load(self) -> None:
        data = self._path.read_bytes()
        whole, self.torn = lines_of(data)
        for event, digest in iter_chain(whole):
            self._state = apply(self._state, event)
            self._head = digest
        self._lines = whole
        self._next_seq = len(whole)
        if self.torn:
            os.truncate(self._path, len(data) - len(self.torn))

    @property
    def state(self) -> SessionState:
        if self._state is None:
            raise EventImpossible("the session has not been opened")
        return self._state

    @property
    def lines(self) -> list[bytes]:
        """Every line so far; readers start here and then follow."""
        return self._lines

    @property
    def head(self) -> str:
        """SHA-256 of the last line: the `prev` of the next."""
        return self._head

    def events(self) -> Iterator[Event]:
        """Yield every event so far."""
        return map(decode, self._lines)

    @property
    def clock(self) -> Clock:
        return self._clock

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(event, line)` after each event; returns how to stop it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def append(self, body: Body, by: str = "host") -> Event:
        """Write one event and return it, as its line will be read.

        Raises:
            EventImpossible: the event cannot happen now; nothing is written.
            EventUnreadable: its line could not be read again; nothing is written.
            OSError: the disk refused; nothing is told to anyone and the state is as before.
        """
        now = self._clock.now()
        event = Event(self._next_seq, now.at, now.boot_id, now.boottime, 0, self._head, by, body)
        state = apply(self._state, event)
        event = replace(event, elapsed=state.elapsed_ms(now))
        line = encode(event)
        readable = decode(line)
        if readable != event:
            event, state = readable, apply(self._state, readable)
        self._write(line + b"\n")
        self._state = state
        self._lines.append(line)
        self._head = sha256(line).hexdigest()
        self._next_seq += 1
        for subscriber in tuple(self._subscribers):
            subscriber(event, line)
        return event

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, data) != len(data):
                raise OSError(f"short write to {self._path}")
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise
        if self.copy is not None:
            self.copy.append(data)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self.copy is not None:
            self.copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
