"""Who answers in the end: any OpenAI-compatible service, or a script in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec


class UpstreamFailed(Exception):
    """The model service did not answer; the call is given back."""


class Answer(msgspec.Struct, frozen=True):
    """What the service said."""

    status: int
    body: dict[str, Any]


class Upstream(Protocol):
    """Whoever answers completions."""

    async def complete(self, path: str, request: dict[str, Any]) -> Answer: ...

    async def close(self) -> None: ...


class HttpUpstream:
    """A service that speaks the OpenAI protocol.

    Args:
        base: its address up to and with `/v1`.
        key: its bearer key, which no participant sees.
        model: what the service calls the model, where it is not what our callers call it.
        unix_socket: where it listens, if not at the address.
        seconds: how long one call may take.
    """

    def __init__(
        self,
        base: str,
        key: str | None = None,
        *,
        model: str | None = None,
        unix_socket: Path | None = None,
        seconds: float = 300.0,
    ) -> None:
        self._base = base.rstrip("/")
        self._named = {} if model is None else {"model": model}
        self._unix_socket = unix_socket
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._seconds = seconds
        self._session: Any = None

    async def complete(self, path: str, request: dict[str, Any]) -> Answer:
        import aiohttp

        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._seconds)
            place = self._unix_socket
            # No bound on connections: the semaphores of those who ask are theirs, and the budget is the gateway's.
            connector = (
                aiohttp.TCPConnector(limit=0) if place is None else aiohttp.UnixConnector(str(place), limit=0)
            )
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout, connector=connector)
        wanted = {**request, **self._named}
        try:
            async with self._session.post(f"{self._base}/{path}", json=wanted) as response:
                body = await response.json(content_type=None)
        except (TimeoutError, aiohttp.ClientError, ValueError) as error:
            raise UpstreamFailed(
                f"the model service did not answer: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(body, dict):
            raise UpstreamFailed(f"the model service answered {response.status} with what is no JSON object")
        return Answer(response.status, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class ScriptedUpstream:
    """Answers from a function, for tests."""

    def __init__(self, reply: Callable[[dict[str, Any]], Answer | Exception]) -> None:
        self._reply = reply
        self.requests: list[dict[str, Any]] = []

    async def complete(self, path: str, request: dict[str, Any]) -> Answer:
        self.requests.append({"path": path, **request})
        await asyncio.sleep(0)
        answer = self._reply(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        pass
