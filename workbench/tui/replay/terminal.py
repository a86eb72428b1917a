"""The recorded shell at the cursor as a page: drawn from its bytes, with nothing in them obeyed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.color import Color
from rich.style import Style as RichStyle
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.widget import Widget
from textual.widgets import Static

from sessions.recording.reader import RecordingUnreadable
from sessions.recording.screen import TRUE_COLOUR, Colour, Look, Screen, Style, hex_colour
from workbench.ink.lines import Line, Tone
from workbench.ink.text import one_line
from workbench.review.moments import Moment
from workbench.review.terminals import Terminals, recordings_at
from workbench.tui.replay.source import ReplaySource
from workbench.tui.screens.dialog import Dialog
from workbench.tui.widgets.lines import Words

STEP_MS = 10_000


def drawn(screen: Screen) -> Text:
    """Return a screen as text with its colours; links and everything else that acts have no place in it."""
    text = Text(no_wrap=True, end="")
    for number, line in enumerate(screen.lines):
        for span in line:
            text.append(span.text, _style(span.style))
        if number + 1 < len(screen.lines):
            text.append("\n")
    return text


def _style(style: Style) -> RichStyle:
    look = Look(style.look)
    return RichStyle(
        color=_colour(style.foreground),
        bgcolor=_colour(style.background),
        bold=Look.BOLD in look,
        dim=Look.DIM in look,
        italic=Look.ITALIC in look,
        underline=Look.UNDERLINE in look,
        reverse=Look.REVERSE in look,
        conceal=Look.HIDDEN in look,
        strike=Look.STRIKE in look,
    )


def _colour(colour: Colour) -> Color | None:
    if colour is None:
        return None
    return Color.parse(hex_colour(colour)) if colour >= TRUE_COLOUR else Color.from_ansi(colour)


class TerminalPage(Dialog[None]):
    """One recorded terminal that follows the cursor."""

    title_text = "Recorded terminal"
    size_class = "wide tall"
    DEFAULT_CSS = (
        "TerminalPage ScrollableContainer { height: 1fr; } TerminalPage Static { width: auto; height: auto; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play or stop", show=False, priority=True),
        Binding("right", "skip(1)", "10 s on", show=False, priority=True),
        Binding("left", "skip(-1)", "10 s back", show=False, priority=True),
        Binding("tab", "other", "another terminal", show=False, priority=True),
        Binding("T,q", "close", "close", show=False),
    ]

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        self._source = source
        self._terminals = Terminals(source.record)
        self._chosen = -1
        self._drawing = asyncio.Lock()
        self._wanted = 0

    def body(self) -> Iterable[Widget]:
        yield Words([], id="about")
        with ScrollableContainer():
            yield Static("", id="terminal", markup=False)

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("space", "play"), ("← →", "10 s"), ("tab", "another terminal"), ("esc", "close"))

    def on_mount(self) -> None:
        self._before, self._source.moved = self._source.moved, self._moved
        self._moved()

    def on_unmount(self) -> None:
        self._source.moved = self._before

    def _moved(self) -> None:
        self._before()
        self._wanted += 1
        self.run_worker(self._draw(self._wanted), exit_on_error=False)

    async def _draw(self, wanted: int) -> None:
        """Draw where the cursor is, unless it has moved on meanwhile: reaching a moment may take a while."""
        async with self._drawing:
            if wanted != self._wanted:
                return
            moment = self._source.moment
            numbers = recordings_at(moment)
            if not numbers:
                self._show(Text("no recorded shell has been opened by now"), "", moment)
                return
            number = numbers[self._chosen % len(numbers)]
            try:
                screen = await asyncio.to_thread(self._terminals.screen, number, moment)
            except RecordingUnreadable as error:
                self._show(Text(one_line(str(error))), "cannot be read", moment)
                return
            about = f"recording {number} of {len(numbers)}"
            remarks = [screen.remark, "" if screen.exact else "drawn from the recent past alone"]
            self._show(drawn(screen), " · ".join((about, *filter(None, remarks))), moment)

    def _show(self, text: Text, about: str, moment: Moment) -> None:
        if not self.is_mounted:
            return
        line: Line = ((f"{moment.now.at[11:19]} UTC  ", Tone.STRONG), (one_line(about), Tone.MUTED))
        self.query_one("#about", Words).put([line, ()])
        self.query_one("#terminal", Static).update(text)

    def action_play(self) -> None:
        self._source.toggle()

    def action_skip(self, by: int) -> None:
        self._source.skip(by * STEP_MS)

    def action_other(self) -> None:
        self._chosen -= 1
        self._moved()
