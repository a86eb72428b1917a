"""The live source over a real socket: the whole past, then the present, through a host that dies and comes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessions.clients.client import HostGone
from sessions.clients.follow import Follower
from sessions.clients.hosting import SessionOver
from sessions.clients.protocol import Refusal
from sessions.record.events import Event, as_plain
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, until
from workbench.tui.app import WorkbenchApp
from workbench.tui.live import LiveSource
from workbench.tui.scripted import ScriptedSource
from workbench.tui.source import Happened, HostFound, HostLost, Sampled, Update


class FakeHost:
    """Speaks the protocol from a list of events; can be killed and started again."""

    def __init__(self, path: Path, events: list[Event]) -> None:
        self.path = path
        self.events = events
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))

    async def kill(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self.path.unlink(missing_ok=True)

    def tell(self, method: str, params: Any) -> None:
        for writer in self._writers:
            writer.write(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n")

    def happen(self, event: Event) -> None:
        self.events.append(event)
        self.tell("event", as_plain(event))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                request = msgspec.json.decode(line)
                self.asked.append((request["method"], request["params"]))
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
                if request["method"] == "score":
                    answer = {
                        "id": request["id"],
                        "error": {"code": -32000, "message": "cannot score: paused"},
                    }
                writer.write(msgspec.json.encode(answer) + b"\n")
                if request["method"] == "events":
                    self._writers.append(writer)
                    for event in self.events[request["params"]["from_seq"] :]:
                        params = as_plain(event)
                        writer.write(msgspec.json.encode({"method": "event", "params": params}) + b"\n")


def told() -> tuple[Story, list[Event]]:
    """Return a story and the events it told."""
    story = Story().afternoon()
    events = []
    while not story.source._updates.empty():
        update = story.source._updates.get_nowait()
        if isinstance(update, Happened):
            events.append(update.event)
    return story, events


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[FakeHost]:
    _, events = told()
    fake = FakeHost(tmp_path / "host.sock", events)
    await fake.start()
    yield fake
    await fake.kill()


class Collected:
    """Everything a source brings, as it comes."""

    def __init__(self, source: LiveSource) -> None:
        self.updates: list[Update] = []
        self._task = asyncio.create_task(self._collect(source))

    async def _collect(self, source: LiveSource) -> None:
        async for batch in source.updates():
            self.updates += batch

    def seqs(self) -> list[int]:
        return [update.event.seq for update in self.updates if isinstance(update, Happened)]

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110  (the condition is anything)
                await asyncio.sleep(0)


async def test_all_that_happened_comes_once_and_in_order_and_then_the_rest(host: FakeHost) -> None:
    *most, last = host.events
    host.events = list(most)
    source = LiveSource(lambda: Follower.connect(host.path))
    await source.start()
    came = Collected(source)
    await came.until(lambda: len(came.seqs()) == len(most))
    host.happen(last)
    await came.until(lambda: len(came.seqs()) == len(most) + 1)
    assert came.seqs() == list(range(len(most) + 1))
    assert isinstance(came.updates[0], HostFound)
    await source.close()


async def test_leaving_after_the_session_was_closed_raises_nothing(host: FakeHost) -> None:
    connected: list[int] = []

    async def connect() -> Follower:
        if connected:
            connected.append(2)
            raise SessionOver("session s-1 is closed")
        connected.append(1)
        return await Follower.connect(host.path)

    source = LiveSource(connect)
    await source.start()
    came = Collected(source)
    await came.until(lambda: len(came.seqs()) == len(host.events))
    await host.kill()
    await came.until(lambda: len(connected) == 2)
    await source.close()


async def test_a_host_that_dies_is_reported_and_followed_again_from_where_it_was(host: FakeHost) -> None:
    restarts: list[int] = []

    async def connect() -> Follower:
        if not host.path.exists() and came.updates:
            restarts.append(1)
            await host.start()
        return await Follower.connect(host.path)

    source = LiveSource(connect)
    await source.start()
    came = Collected(source)
    *_, last = host.events
    await came.until(lambda: len(came.seqs()) == len(host.events))
    await host.kill()
    await came.until(lambda: any(isinstance(update, HostLost) for update in came.updates))
    await came.until(lambda: sum(isinstance(update, HostFound) for update in came.updates) == 2)
    assert restarts == [1]
    assert came.seqs() == list(range(last.seq + 1))
    assert host.asked[-1] == ("events", {"from_seq": last.seq + 1})
    await source.close()


async def test_asking_while_the_host_is_gone_says_so_and_a_refusal_keeps_its_words(host: FakeHost) -> None:
    source = LiveSource(lambda: Follower.connect(host.path))
    with pytest.raises(HostGone, match="note could not be asked"):
        await source.request("note", text="x")
    await source.start()
    came = Collected(source)
    await came.until(lambda: bool(came.updates))
    with pytest.raises(Refusal, match="cannot score: paused"):
        await source.request("score", note="", wait=False)
    await source.close()


async def test_samples_arrive_and_damaged_ones_are_passed_over(host: FakeHost) -> None:
    sample = Story().machine(seconds=0)
    first = sample.source._updates
    updates = [first.get_nowait() for _ in range(first.qsize())]
    value = next(update.sample for update in updates if isinstance(update, Sampled))
    source = LiveSource(lambda: Follower.connect(host.path))
    await source.start()
    came = Collected(source)
    await came.until(lambda: len(came.seqs()) == len(host.events))
    host.tell("telemetry", ["nonsense"])
    host.tell("telemetry", msgspec.to_builtins(value))
    await came.until(lambda: any(isinstance(update, Sampled) for update in came.updates))
    assert [update.sample for update in came.updates if isinstance(update, Sampled)] == [value]
    await source.close()


async def test_the_screen_says_host_gone_and_recovers(host: FakeHost) -> None:
    gate = asyncio.Event()
    gate.set()

    async def connect() -> Follower:
        await gate.wait()
        if not host.path.exists():
            await host.start()
        return await Follower.connect(host.path)

    app = WorkbenchApp(LiveSource(connect, clock=ScriptedSource().clock), ascii_only=False)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "1.3021" in screen_text(app))
        gate.clear()
        await host.kill()
        await until(pilot, lambda: "HOST GONE" in screen_text(app))
        assert "■ host" in screen_text(app)
        gate.set()
        await until(pilot, lambda: "HOST GONE" not in screen_text(app))
        assert "● host" in screen_text(app)
