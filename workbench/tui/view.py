"""What the screens are given to draw: one frozen value, made anew whenever something changes."""

from __future__ import annotations

import msgspec

from sessions.record.clock import Instant
from sessions.record.events import Light, Part, PauseReason
from sessions.record.state import Health, Phase, ProctorMessage, SessionState
from sessions.telemetry.samples import Sample
from workbench.tui.source import Mode

HISTORY = 600
"""Samples kept for the panels: ten minutes at one a second."""


class Link(msgspec.Struct, frozen=True):
    """Whether the host answers."""

    up: bool = False
    why: str = ""
    attempt: int = 0
    since: Instant | None = None


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that is not as in the last snapshot."""

    path: str
    change: str
    """`added`, `modified`, `removed` or `type-changed`."""
    size: int | None = None


class View(msgspec.Struct, frozen=True):
    """Everything there is to show at one moment."""

    state: SessionState
    now: Instant
    mode: Mode = Mode.LIVE
    link: Link = Link(up=True)
    samples: tuple[Sample, ...] = ()
    brief: str | None = None
    changed: tuple[ChangedFile, ...] | None = None
    """The first of them; None until it was asked for."""
    changed_count: int = 0
    changed_problem: str = ""

    @property
    def sample(self) -> Sample | None:
        return self.samples[-1] if self.samples else None

    @property
    def stale_seconds(self) -> float:
        """How old the last sample is."""
        if self.sample is None:
            return 0.0
        return max(0, self.now.boottime - self.sample.boottime) / 1e9

    @property
    def remaining_ms(self) -> int:
        return self.state.remaining_ms(self.now)

    @property
    def can_act(self) -> bool:
        return self.mode is Mode.LIVE and self.state.phase is not Phase.CLOSED

    @property
    def can_resume(self) -> bool:
        """Whether this person may let the clock run again, by the host's own rule."""
        pause = self.state.pause
        if pause is None or not self.can_act:
            return False
        return pause.reason is not PauseReason.SCORING and not pause.is_proctors

    @property
    def unread(self) -> ProctorMessage | None:
        """The oldest message nobody acknowledged."""
        return next((message for message in self.state.messages if not message.acknowledged), None)

    def troubles(self) -> list[tuple[Part, Health]]:
        """Return what is not green, the worst first."""
        unwell = [
            (part, health) for part, health in self.state.health.items() if health.light is not Light.GREEN
        ]
        return sorted(unwell, key=lambda item: item[1].light is not Light.RED)
