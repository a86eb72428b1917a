"""A source over a live host: follows its events, and connects again when it goes away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from sessions.clients.client import HostGone
from sessions.clients.follow import Follower, event_in
from sessions.clients.hosting import SessionOver
from sessions.clients.protocol import Refusal
from sessions.record.clock import Clock, Instant, SystemClock
from sessions.record.events import EventUnreadable
from sessions.telemetry.samples import Sample
from workbench.tui.source import Batch, Happened, HostFound, HostLost, Mode, Sampled, Update

Connect = Callable[[], Awaitable[Follower]]
"""Connects to the host, starting it again from the log where it is gone; raises HostGone."""

WAITS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts; the last one repeats."""
BATCH = 2_000


class LiveSource:
    """Follows one host for as long as the screen is open."""

    def __init__(self, connect: Connect, *, mode: Mode = Mode.LIVE, clock: Clock | None = None) -> None:
        self.mode = mode
        self._connect = connect
        self._clock = clock or SystemClock()
        self._follower: Follower | None = None
        self._next_seq = 0
        self._updates: asyncio.Queue[Update | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def now(self) -> Instant:
        return self._clock.now()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._keep_following())

    async def updates(self) -> AsyncIterator[Batch]:
        """Yield all that has come since the last time."""
        while (first := await self._updates.get()) is not None:
            batch = [first]
            while len(batch) < BATCH and not self._updates.empty():
                update = self._updates.get_nowait()
                if update is None:
                    yield tuple(batch)
                    return
                batch.append(update)
            yield tuple(batch)

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host.

        Raises:
            Refusal: the host refuses, or this source only watches.
            HostGone: nobody answers now.
        """
        if self.mode is not Mode.LIVE and method not in {"diff", "brief", "status", "history", "hello"}:
            raise Refusal(f"{method}: this screen only watches; nothing is sent to the session")
        if self._follower is None:
            raise HostGone(f"{method} could not be asked: the host is gone and is being started again")
        return await self._follower.request(method, **parameters)

    async def _keep_following(self) -> None:
        attempt = 0
        while True:
            try:
                self._follower = await self._connect()
                await self._follower.request("events", from_seq=self._next_seq)
                self._updates.put_nowait(HostFound())
                attempt = 0
                await self._read(self._follower)
                why = "the host went away"
            except SessionOver:
                return  # its last event was shown, or is in the record; nobody comes back
            except (HostGone, Refusal, OSError, EventUnreadable) as error:
                why = str(error)
            await self._let_go()
            attempt += 1
            self._updates.put_nowait(HostLost(why, attempt))
            await asyncio.sleep(WAITS[min(attempt, len(WAITS)) - 1])

    async def _read(self, follower: Follower) -> None:
        async for notification in follower.notifications():
            if notification.get("method") == "telemetry":
                with contextlib.suppress(msgspec.ValidationError, KeyError):
                    self._updates.put_nowait(Sampled(msgspec.convert(notification["params"], Sample)))
                continue
            event = event_in(notification)
            if event is not None and event.seq >= self._next_seq:
                self._next_seq = event.seq + 1
                self._updates.put_nowait(Happened(event))

    async def _let_go(self) -> None:
        if self._follower is not None:
            with contextlib.suppress(OSError):
                await self._follower.close()
            self._follower = None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._let_go()
        self._updates.put_nowait(None)
