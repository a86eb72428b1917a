"""A live session seen from its log alone: the file is read as it grows, and there is no way to send anything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from sessions.clients.protocol import Refusal
from sessions.record.clock import Clock, Instant, SystemClock
from sessions.record.events import ClockStarted, DeadlineReached, Event, SessionClosed, Submitted, decode
from sessions.record.fold import instant_of
from sessions.record.store import Record
from sessions.telemetry.samples import Sample
from workbench.review import answers
from workbench.review.changes import answer_diff
from workbench.review.tail import EVERY_SECONDS, Tail
from workbench.tui.source import Batch, Happened, HostFound, HostLost, Mode, Sampled

SILENT_SECONDS = 45.0
"""The host writes a heartbeat every 10 s while the clock runs or stands."""
_TELEMETRY_TAIL = 2_000_000
_sample_decoder = msgspec.json.Decoder(Sample)


class WatchSource:
    """Feeds one screen from a log that somebody else's host is writing."""

    mode = Mode.WATCH

    def __init__(self, record: Record, *, clock: Clock | None = None) -> None:
        self.record = record
        self._clock = clock or SystemClock()
        self._log = Tail(record.log)
        self._telemetry = Tail(record.telemetry / "samples.jsonl", last_bytes=_TELEMETRY_TAIL)
        self._last: Event | None = None
        self._lost = False
        self._beats = False
        """Whether heartbeats are due."""

    def now(self) -> Instant:
        return self._clock.now()

    async def start(self) -> None:
        """Nothing to connect to: `updates` reads."""

    async def updates(self) -> AsyncIterator[Batch]:
        yield (HostFound(),)
        while True:
            batch = tuple(self._news())
            if batch:
                yield batch
            if self._last is not None and isinstance(self._last.body, SessionClosed):
                return
            await asyncio.sleep(EVERY_SECONDS)

    def _news(self) -> Iterator[Any]:
        for line in self._log.read():
            self._last = decode(line)
            if isinstance(self._last.body, ClockStarted):
                self._beats = True
            elif isinstance(self._last.body, Submitted | DeadlineReached):
                self._beats = False
            yield Happened(self._last)
        for line in self._telemetry.read():
            with contextlib.suppress(msgspec.DecodeError):
                yield Sampled(_sample_decoder.decode(line))
        yield from self._silence()

    def _silence(self) -> Iterator[Any]:
        """Say when the host has stopped writing, and when it goes on."""
        if self._last is None:
            return
        silent = self.now().milliseconds_since(instant_of(self._last)) / 1000
        if self._beats and silent > SILENT_SECONDS and not self._lost:
            self._lost = True
            yield HostLost(f"nothing was written for {silent:.0f} s")
        elif silent <= SILENT_SECONDS and self._lost:
            self._lost = False
            yield HostFound()

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Answer from the record.

        Raises:
            Refusal: it would act on the session.
        """
        match method:
            case "status" | "history" | "brief":
                return await asyncio.to_thread(answers.answer, self.record, method, proctor=True)
            case "diff":
                return await answer_diff(self.record, parameters)
        raise Refusal(f"{method}: this screen only watches; there is no way from it to the session")

    async def close(self) -> None:
        self._log.close()
        self._telemetry.close()
