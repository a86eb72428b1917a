"""Where a screen's facts come from: a live host, a script, or a record being replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from sessions.record.clock import Instant
from sessions.record.events import Event
from sessions.record.state import SessionState
from sessions.telemetry.samples import Sample


class Mode(StrEnum):
    """What the person at the screen may do."""

    LIVE = "live"
    """A participant's own session."""
    WATCH = "watch"
    """Somebody else's session as it happens: nothing can be sent."""
    REPLAY = "replay"
    """A record with a time cursor: nothing can be sent."""


class Happened(msgspec.Struct, frozen=True):
    """One more event; folded onto the state by the app."""

    event: Event


class Replaced(msgspec.Struct, frozen=True):
    """A whole other state: the cursor of a replay moved, perhaps backwards."""

    state: SessionState
    samples: tuple[Sample, ...] = ()
    """The last ten minutes before the cursor."""


class Sampled(msgspec.Struct, frozen=True):
    """One more sample of the machine."""

    sample: Sample


class HostLost(msgspec.Struct, frozen=True):
    """Nobody answers; the source keeps trying."""

    why: str
    attempt: int = 0


class HostFound(msgspec.Struct, frozen=True):
    """The host answers (again)."""


Update = Happened | Replaced | Sampled | HostLost | HostFound
Batch = tuple[Update, ...]


class Source(Protocol):
    """Feeds one app. `start` first, then iterate `updates` once; `request` at any time after `start`."""

    mode: Mode

    def now(self) -> Instant:
        """Return the moment the screen shows: the machine's clock, or the cursor of a replay."""
        ...

    async def start(self) -> None:
        """Begin to connect or to read; returns at once."""
        ...

    def updates(self) -> AsyncIterator[Batch]:
        """Yield what happened, as many at a time as there are; ends when nothing can come any more."""
        ...

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host.

        Raises:
            Refusal: the host, or a source that only shows, refuses.
            HostGone: nobody answers.
        """
        ...

    async def close(self) -> None: ...
