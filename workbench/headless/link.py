"""The way from a headless session to its host: requests, events, and a new host when the old one is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from sessions.clients.client import HostGone
from sessions.clients.follow import Follower, event_in
from sessions.clients.hosting import SessionOver, connect
from sessions.record.events import Event
from sessions.record.fold import fold
from sessions.record.log import read_log
from sessions.record.store import Record
from sessions.record.visibility import participant_event

OnEvent = Callable[[Event], None]
SAFE_TO_REPEAT = frozenset({"hello", "status", "brief", "history", "diff", "changed", "events"})


class Link:
    """One record's host, followed from its first event; whatever happens is told to `on_event` once."""

    def __init__(self, record: Record, on_event: OnEvent, *, from_seq: int = 0) -> None:
        self.record = record
        self._on_event = on_event
        self._next_seq = from_seq
        self._follower: Follower | None = None
        self._listening: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self.over = False

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host; it is started again when it is gone, and asked again what changes nothing.

        Raises:
            Refusal: the host refused.
            HostGone: it went away under a request that may or may not have been carried out.
            SessionOver: the session is closed.
        """
        for attempts_left in (2, 1, 0):
            follower = await self._connected()
            try:
                return await follower.request(method, **parameters)
            except HostGone:
                await self._forget(follower)
                if method not in SAFE_TO_REPEAT or not attempts_left:
                    raise
        raise AssertionError("unreachable")

    async def _connected(self) -> Follower:
        async with self._connecting:
            if self._follower is not None and self._listening is not None and not self._listening.done():
                return self._follower
            await self._let_go()
            # `connect` starts a host where there is none; the follower then finds it listening.
            (await asyncio.to_thread(connect, self.record)).close()
            self._follower = await Follower.connect(self.record.participant_socket)
            await self._follower.request("events", from_seq=self._next_seq)
            self._listening = asyncio.create_task(self._listen(self._follower))
            return self._follower

    async def _listen(self, follower: Follower) -> None:
        async for notification in follower.notifications():
            event = event_in(notification)
            if event is not None and event.seq >= self._next_seq:
                self._next_seq = event.seq + 1
                self._on_event(event)

    async def keep(self) -> None:
        """Stay connected until the session is over, so that its events are heard even while nobody asks."""
        while not self.over:
            try:
                await self._connected()
                if self._listening is not None:
                    await asyncio.shield(self._listening)
            except SessionOver:
                self.over = True
                for event in await asyncio.to_thread(self._the_rest):
                    self._on_event(event)
            except (HostGone, OSError):
                await asyncio.sleep(1.0)

    def _the_rest(self) -> list[Event]:
        """Return what the host wrote after the connection broke and before it ended, as it would have told it."""
        events = read_log(self.record.log).events
        state = fold(events)
        return [participant_event(event, state) for event in events[self._next_seq :]]

    async def _forget(self, follower: Follower) -> None:
        """Let go of a connection that broke, unless another has taken its place already."""
        async with self._connecting:
            if self._follower is follower:
                await self._let_go()

    async def _let_go(self) -> None:
        if self._follower is not None:
            with contextlib.suppress(OSError):
                await self._follower.close()
            self._follower = None

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        await self._let_go()
