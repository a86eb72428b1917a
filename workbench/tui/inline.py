"""A text that draws itself anew each second in the lines below the prompt, and stays there when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Static

SECONDS = 1.0


class Inline(App[bool]):
    """Shows what `draw` returns, with the terminal's own colours, until it returns None or somebody leaves."""

    CSS = "Screen, Static { background: ansi_default; height: auto; } Screen:inline { border: none; }"
    BINDINGS: ClassVar = [
        Binding("q,escape", "leave", "leave"),
        Binding("ctrl+c", "leave", "leave", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, draw: Callable[[], tuple[str, bool]]) -> None:
        super().__init__(ansi_color=True)
        self._draw = draw
        self._shown = Static()

    def compose(self) -> ComposeResult:
        yield self._shown

    async def on_mount(self) -> None:
        await self._again()
        self.set_interval(SECONDS, self._again)

    async def _again(self) -> None:
        text, going_on = await asyncio.to_thread(self._draw)
        self._shown.update(Text.from_ansi(text))
        if not going_on:
            self.exit(True)

    def action_leave(self) -> None:
        self.exit(False)


def watch(draw: Callable[[], tuple[str, bool]]) -> bool:
    """Show `draw` until it says that nothing more comes; returns whether it did, rather than somebody leaving.

    `draw` returns the text, with ANSI styles, and whether it goes on.
    """
    return bool(Inline(draw).run(inline=True, inline_no_clear=True, mouse=False))
