"""A source that says what it is told to: for tests, pictures and measurements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from sessions.clients.protocol import Refusal
from sessions.record.clock import Instant, ManualClock
from sessions.record.events import Body, Event
from sessions.record.fold import apply
from sessions.record.state import SessionState
from sessions.telemetry.samples import Sample
from workbench.tui.source import Batch, Happened, HostFound, HostLost, Mode, Replaced, Sampled, Update

Answer = Callable[..., dict[str, Any] | Awaitable[dict[str, Any]]]


class ScriptedSource:
    """Holds a session of its own on a clock that moves when told to.

    `answers` maps a method to what it does; a method that is not there answers with nothing. Every request is
    kept in `requests`.
    """

    def __init__(self, clock: ManualClock | None = None, *, mode: Mode = Mode.LIVE) -> None:
        self.mode = mode
        self.clock = clock or ManualClock()
        self.state: SessionState | None = None
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Answer] = {}
        self.closed = False
        self._next_seq = 0
        self._updates: asyncio.Queue[Update | None] = asyncio.Queue()
        self._put(HostFound())

    def now(self) -> Instant:
        return self.clock.now()

    async def start(self) -> None:
        """Nothing to connect to."""

    async def updates(self) -> AsyncIterator[Batch]:
        while (first := await self._updates.get()) is not None:
            batch = [first]
            while not self._updates.empty() and (update := self._updates.get_nowait()) is not None:
                batch.append(update)
            yield tuple(batch)

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.requests.append((method, parameters))
        if self.mode is not Mode.LIVE and method not in {"diff", "brief"}:
            raise Refusal(f"{method}: this screen only watches")
        answer = self.answers.get(method)
        if answer is None:
            return {}
        result = answer(**parameters)
        return result if isinstance(result, dict) else await result

    async def close(self) -> None:
        self.closed = True
        self._updates.put_nowait(None)

    # --- the script ---------------------------------------------------------------------------------------

    def _put(self, update: Update) -> None:
        self._updates.put_nowait(update)

    def happen(self, body: Body, by: str = "host") -> Event:
        """Let one event happen now."""
        now = self.clock.now()
        event = Event(self._next_seq, now.at, now.boot_id, now.boottime, 0, "0" * 64, by, body)
        self.state = apply(self.state, event)
        event = replace(event, elapsed=self.state.elapsed_ms(now))
        self._next_seq += 1
        self._put(Happened(event))
        return event

    def sample(self, sample: Sample) -> None:
        self._put(Sampled(sample))

    def jump(self, state: SessionState, samples: tuple[Sample, ...] = ()) -> None:
        """Show another state altogether, as a replay's cursor does."""
        self._put(Replaced(state, samples))

    def lose(self, why: str, attempt: int = 1) -> None:
        self._put(HostLost(why, attempt))

    def find(self) -> None:
        self._put(HostFound())
