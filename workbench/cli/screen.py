"""Opens the screen on a live session, a watched one or a record."""

from __future__ import annotations

import asyncio
from typing import Any

from sessions.record.store import Record


def run_live(record: Record) -> int:
    """Show a participant's own session until it is left."""
    from sessions.clients.follow import Follower
    from sessions.clients.hosting import connect
    from workbench.cli.consent import rules_text
    from workbench.cli.shells import open_recorded
    from workbench.tui import run
    from workbench.tui.live import LiveSource

    async def reach() -> Follower:
        # `connect` starts a host where there is none; the follower then finds it listening.
        (await asyncio.to_thread(connect, record)).close()
        return await Follower.connect(record.participant_socket)

    def shell() -> object:
        return open_recorded(record)

    return run(LiveSource(reach), shell=shell, rules=rules_text())


def run_replay(record: Record, film: Any, moment: Any, *, theme: str | None) -> int:
    """Show a record, from `moment` on."""
    from workbench.tui.replay.screen import ReplayApp
    from workbench.tui.replay.source import ReplaySource

    return _run(ReplayApp, ReplaySource(record, film, start=moment), theme)


def run_watch(record: Record, *, theme: str | None) -> int:
    """Show a live session of somebody else."""
    from workbench.tui import run
    from workbench.tui.watching import WatchSource

    return run(WatchSource(record), theme=theme)


def _run(app: Any, source: Any, theme: str | None) -> int:
    from workbench.tui.runner import run_app

    return run_app(source, theme=theme, shell=None, rules="", mouse=True, make=app)
