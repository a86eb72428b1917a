"""What screens and agents use to talk to a host: requests and the stream of events, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from sessions.clients.client import HostGone, result_of
from sessions.clients.protocol import LINE_LIMIT
from sessions.record.events import Event, decode


class Follower:
    """One connection that carries requests and, once `events` is asked for, everything that happens."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._notifications: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path) -> Follower:
        """Connect to a host.

        Raises:
            HostGone: nobody listens at `path`.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=LINE_LIMIT)
        except OSError as error:
            raise HostGone(f"no host answers at {path}: {error.strerror or error}") from error
        return cls(reader, writer)

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host; other requests and notifications go on meanwhile.

        Raises:
            Refusal: the host answered with an error.
            HostGone: the host went away.
        """
        if self._pump.done():
            raise HostGone("the host went away")
        number = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        try:
            self._writer.write(msgspec.json.encode(message) + b"\n")
            await self._writer.drain()
            return result_of(await answer)
        except OSError as error:
            raise HostGone(f"the host went away while {method} was sent: {error}") from error
        finally:
            self._waiting.pop(number, None)

    async def notifications(self) -> AsyncIterator[dict[str, Any]]:
        """Yield `{"method": ..., "params": ...}` as they come; ends when the host goes away."""
        while (message := await self._notifications.get()) is not None:
            yield message

    async def _read(self) -> None:
        try:
            while (line := await self._reader.readline()).endswith(b"\n"):
                message = msgspec.json.decode(line)
                waiter = self._waiting.get(message.get("id"))
                if waiter is None:
                    self._notifications.put_nowait(message)
                elif not waiter.done():
                    waiter.set_result(message)
        except (OSError, ValueError, msgspec.DecodeError):
            pass
        finally:
            gone = HostGone("the host went away")
            for waiter in self._waiting.values():
                if not waiter.done():
                    waiter.set_exception(gone)
            self._notifications.put_nowait(None)

    async def close(self) -> None:
        self._pump.cancel()
        self._writer.close()


def event_in(notification: dict[str, Any]) -> Event | None:
    """Return the event an `event` notification carries, else None."""
    if notification["method"] != "event":
        return None
    return decode(msgspec.json.encode(notification["params"]))
