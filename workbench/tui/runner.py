"""Runs the app on a real terminal and leaves that terminal as it was, whatever ends the app."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from workbench.tui.app import WorkbenchApp
from workbench.tui.source import Source
from workbench.tui.terminal import ENDING, Ended, Terminal
from workbench.tui.theme import chosen

GRACE_SECONDS = 2.0
"""How long an orderly exit may take after a signal."""


def run_app(
    source: Source,
    *,
    theme: str | None,
    shell: Callable[[], object] | None,
    rules: str,
    mouse: bool,
    make: Callable[..., WorkbenchApp] = WorkbenchApp,
) -> int:
    """Run until detached or over; 128 + n after signal n. `make` builds the app; replay has one of its own."""
    terminal = Terminal()
    colours = os.environ.get("NO_COLOR")
    app = make(source, theme=chosen(theme), shell=shell, rules=rules)
    if colours is not None:
        # The framework takes the variable away; shells opened from here must still see it.
        os.environ["NO_COLOR"] = colours
    try:
        return asyncio.run(_until_done(app, terminal, mouse=mouse))
    except Ended as ended:
        return 128 + ended.number
    finally:
        terminal.restore()


async def _until_done(app: WorkbenchApp, terminal: Terminal, *, mouse: bool) -> int:
    loop = asyncio.get_running_loop()

    def end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(app.exit, 128 + number)
        last = threading.Timer(GRACE_SECONDS, _give_up, (terminal, number))
        last.daemon = True
        last.start()

    # Not handlers and timers of the loop: a terminal that takes no more output holds the loop up.
    for number in ENDING:
        signal.signal(number, end)
    code = await app.run_async(mouse=mouse)
    return app.return_code or 0 if code is None else code


def _give_up(terminal: Terminal, number: int) -> None:
    terminal.restore()
    os._exit(128 + number)
