"""A session as an agent holds it: opened on request, asked through its host, every answer with the time left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sessions.clients.client import HostGone
from sessions.clients.hosting import SessionOver
from sessions.clients.protocol import Fault, Refusal
from sessions.record.events import (
    Body,
    ClockPaused,
    ClockResumed,
    DeadlineReached,
    Event,
    HealthChanged,
    MessageSent,
    ScoreProgressed,
    ScoreRecorded,
    SessionClosed,
    StartingScoreRecorded,
    WarningGiven,
)
from sessions.record.log import read_log
from sessions.record.store import Record, Store
from workbench import launch
from workbench.headless.files import Piece, Workspace
from workbench.headless.link import Link
from workbench.review import answers

Notify = Callable[[str, dict[str, Any]], None]
READ_AFTERWARDS = frozenset({"status", "history", "brief"})


class HeadlessSession:
    """At most one session, and what an agent may do with it. A wish without an environment leaves it to the agent."""

    def __init__(self, wish: launch.Wish, store: Store, notify: Notify, *, rules_sha256: str) -> None:
        self._wish = wish
        self._store = store
        self._notify = notify
        self._rules_sha256 = rules_sha256
        self._link: Link | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._ready = asyncio.Event()
        """Set when the starting score is in."""
        self._files = Workspace(Path("/nonexistent"))

    @property
    def record(self) -> Record | None:
        return None if self._link is None else self._link.record

    # --- life ---------------------------------------------------------------------------------------------

    async def start(
        self, environment: str | None, profile: str | None, minutes: float | None
    ) -> dict[str, Any]:
        """Open the session, take its starting score, start its clock.

        Raises:
            Refusal: there is a session already, or something is asked for that the command line fixed.
            EnvironmentFault: the environment or the machine is not ready.
        """
        async with self._starting:
            if self._link is not None:
                raise Refusal(
                    f"the session {self._link.record.session} is open already; one process holds one session"
                )
            planned = await asyncio.to_thread(
                launch.plan, self._wished(environment, profile, minutes), self._store
            )
            record = await asyncio.to_thread(self._open, planned)
            return await self.take_up(record)

    def _wished(self, environment: str | None, profile: str | None, minutes: float | None) -> launch.Wish:
        wish = self._wish
        if not (wish.environment or environment):
            raise Refusal(
                "session.start needs `environment`: none was named when this began", Fault.BAD_PARAMETERS
            )
        fixed = {
            "environment": (wish.environment or None, environment),
            "profile": (wish.profile, profile),
            "minutes": (None if wish.budget_ms is None else wish.budget_ms / 60_000, minutes),
        }
        for name, (given, asked) in fixed.items():
            if asked is not None and given is not None and asked != given:
                raise Refusal(f"{name} is fixed to {given!r} by whoever started this process")
        budget = wish.budget_ms or (None if minutes is None else round(minutes * 60_000))
        return replace(
            wish,
            environment=wish.environment or environment or "",
            profile=wish.profile or profile,
            budget_ms=budget,
        )

    def _open(self, planned: launch.Plan) -> Record:
        if not launch.is_prepared(planned, self._store.home):
            launch.prepare(planned, self._store.home, self._tell_preparation)
        return launch.open_planned(planned, self._store)

    def _tell_preparation(self, stage: str, fraction: float | None) -> None:
        self._notify("prepare_progress", {"stage": stage, "fraction": fraction})

    async def take_up(self, record: Record) -> dict[str, Any]:
        """Hold an opened session; starts its clock where it has not begun."""
        past = read_log(record.log).events
        if any(isinstance(event.body, StartingScoreRecorded) for event in past):
            self._ready.set()
        # Of a session that has a past, only what happens from now on is told.
        self._link = Link(record, self._on_event, from_seq=len(past))
        self._keeping = asyncio.create_task(self._link.keep())
        found = await self.ask("status")
        if found["phase"] in {"opened", "ready"}:
            await self._begin()
            found = await self.ask("status")
        self._files = Workspace(Path(found["work_tree"]))
        kept = ("session", "environment", "title", "profile", "work_tree", "phase", "budget_ms", "isolation")
        return {key: found[key] for key in kept}

    async def _begin(self) -> None:
        assert self._link is not None
        await self._link.request("consent", rules_sha256=self._rules_sha256)
        await self._ready.wait()
        await self._link.request("start_clock")

    async def close(self) -> None:
        """Let go; the session itself goes on."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._link is not None:
            await self._link.close()

    async def ended(self) -> None:
        """Wait until the session is closed."""
        assert self._keeping is not None
        await asyncio.shield(self._keeping)

    # --- asking -------------------------------------------------------------------------------------------

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host; a closed session is read from its log.

        Raises:
            Refusal: there is no session, or it does not allow it now.
        """
        link = self._require()
        try:
            return await link.request(method, **parameters)
        except SessionOver:
            if method not in READ_AFTERWARDS:
                raise Refusal(f"cannot {method}: the session is closed") from None
            return await asyncio.to_thread(answers.answer, link.record, method)
        except HostGone as error:
            raise Refusal(
                f"the host went away during {method} and is started again; `history` and `status` tell what was "
                f"recorded ({error})",
                Fault.INFRASTRUCTURE,
            ) from error

    def _require(self) -> Link:
        if self._link is None:
            raise Refusal("no session yet: ask for session.start first")
        return self._link

    async def figures(self) -> dict[str, Any]:
        """Return what every answer carries: the time left and the phase; both None before a session is open."""
        if self._link is None:
            return {"time_left_ms": None, "phase": None}
        try:
            found = await self.ask("status")
        except Refusal:
            return {"time_left_ms": None, "phase": None}
        return {"time_left_ms": found["remaining_ms"], "phase": found["phase"]}

    async def read_file(self, path: str, offset: int, limit: int) -> Piece:
        await self._require_running("read")
        return await asyncio.to_thread(self._files.read, path, offset, limit)

    async def write_file(self, path: str, content: bytes, *, append: bool) -> int:
        await self._require_running("write")
        return await asyncio.to_thread(self._files.write, path, content, append=append)

    async def _require_running(self, what: str) -> None:
        phase = (await self.ask("status"))["phase"]
        if phase != "running":
            raise Refusal(f"cannot {what} a file: the session is {phase}")

    # --- telling ------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        """Pass on what an agent needs to hear of."""
        if isinstance(event.body, StartingScoreRecorded):
            self._ready.set()
        told = _told(event)
        if told is not None:
            self._notify(*told)


def _told(event: Event) -> tuple[str, dict[str, Any]] | None:
    """Return the notification that an event becomes, if an agent is told of it at all."""
    name = _TOLD.get(type(event.body))
    if name is None:
        return None
    parameters = {key: value for key, value in msgspec.to_builtins(event.body).items() if key not in _UNTOLD}
    return name, parameters | ({} if event.by == "host" else {"by": event.by})


_TOLD: dict[type[Body], str] = {
    WarningGiven: "warning",
    ScoreProgressed: "score_progress",
    ScoreRecorded: "score_recorded",
    MessageSent: "message",
    ClockPaused: "paused",
    ClockResumed: "resumed",
    DeadlineReached: "deadline",
    HealthChanged: "health",
    SessionClosed: "closed",
}
_UNTOLD = frozenset({"details_sha256", "digest"})
