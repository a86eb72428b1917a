"""The workbench's own screen over a record, with a timeline and the keys that move its cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, OptionList, RichLog
from textual.widgets.option_list import Option

from workbench.ink.events import describe
from workbench.ink.figures import duration, parse_duration
from workbench.ink.lines import Tone
from workbench.ink.text import literal, one_line
from workbench.review.changes import compare, diff_lines
from workbench.tui.app import WorkbenchApp
from workbench.tui.replay.source import ReplaySource, any_change, any_event, any_score
from workbench.tui.replay.timeline import FULL_HEIGHT, SHORT_HEIGHT, Timeline
from workbench.tui.screens.dialog import Dialog, paragraph
from workbench.tui.screens.main import MainScreen
from workbench.tui.view import View
from workbench.tui.widgets.lines import Words

MINUTE = 60_000
TALL = 34
"""Rows from which the whole timeline is shown."""

REPLAY_KEYS = (
    ("space", "play, stop"), ("- +", "slower, faster"), (":", "go to a time of the session"),
    ("[ ]", "score before, next score"), (", .", "event before, next event"), ("{ }", "snapshot before, next snapshot"),
    ("shift+← shift+→", "a minute back, a minute on"), ("e", "all events; enter goes to one"),
    ("D", "what the snapshot changed"), ("T", "the recorded terminal"), ("enter  d", "details and diff of the score under the cursor"),
    ("b", "brief, with contents and search"), ("l  z", "chart: logarithmic, zoom"),
    ("1 2 3 4 5", "overview, brief, notes, files, machine"), ("tab", "next panel"), ("↑ ↓ j k", "move or scroll"),
    ("q", "quit"),
)  # fmt: skip


class ReplayScreen(MainScreen):
    """The main screen with a timeline under it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play or stop", show=False, priority=True),
        Binding("full_stop", "event(1)", "next event", show=False),
        Binding("comma", "event(-1)", "event before", show=False),
        Binding("right_square_bracket", "score(1)", "next score", show=False),
        Binding("left_square_bracket", "score(-1)", "score before", show=False),
        Binding("right_curly_bracket", "change(1)", "next snapshot", show=False),
        Binding("left_curly_bracket", "change(-1)", "snapshot before", show=False),
        Binding("plus,equals_sign", "speed(1)", "faster", show=False),
        Binding("minus", "speed(-1)", "slower", show=False),
        Binding("shift+right", "skip(1)", "a minute on", show=False),
        Binding("shift+left", "skip(-1)", "a minute back", show=False),
        Binding("colon,at", "go", "go to a time", show=False),
        Binding("D", "changes", "changes of the snapshot", show=False),
        Binding("e", "events", "all events", show=False),
        Binding("T", "terminal", "recorded terminal", show=False),
    ]

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        self.source = source
        self.timeline = Timeline(source)
        source.moved = self._moved

    def below(self) -> list[Widget]:
        return [self.timeline]

    def on_resize(self) -> None:
        super().on_resize()
        self.timeline.styles.height = FULL_HEIGHT if self.size.height >= TALL else SHORT_HEIGHT
        self.timeline.display = not self.too_small.display

    def _moved(self) -> None:
        if self.is_mounted:
            self.timeline.redraw()

    def show(self, view: View) -> None:
        super().show(view)
        self.timeline.show(view)

    def action_play(self) -> None:
        self.source.toggle()

    def action_event(self, by: int) -> None:
        self._step(by, "event", self.source.step(by, any_event))

    def action_score(self, by: int) -> None:
        self._step(by, "score", self.source.step(by, any_score))

    def action_change(self, by: int) -> None:
        self._step(by, "snapshot", self.source.step(by, any_change))

    def _step(self, by: int, what: str, found: bool) -> None:
        if not found:
            self.notify(f"no {what} {'after' if by > 0 else 'before'} this", timeout=2, markup=False)

    def action_skip(self, by: int) -> None:
        self.source.skip(by * MINUTE)

    def action_speed(self, by: int) -> None:
        self.source.change_speed(by)

    def action_go(self) -> None:
        def go(milliseconds: int | None) -> None:
            if milliseconds is not None:
                self.source.seek(milliseconds)

        self.app.push_screen(GoTo(), go)

    def action_changes(self) -> None:
        taken = [s for s in self.source.moment.state.snapshots if s.commit is not None]
        if len(taken) < 2:
            self.notify("no snapshot before this one to compare with", markup=False)
            return
        self.app.push_screen(ChangesPage(self.source, taken[-2].number, taken[-1].number))

    def action_terminal(self) -> None:
        from workbench.tui.replay.terminal import TerminalPage

        self.app.push_screen(TerminalPage(self.source))

    def action_events(self) -> None:
        def go(index: int | None) -> None:
            if index is not None:
                self.source.go(self.source.film.after(index))

        self.app.push_screen(EventsPage(self.source), go)


class GoTo(Dialog[int]):
    """Asks for a session time."""

    title_text = "Go to a time of the session"

    def body(self) -> Iterable[Widget]:
        yield Words(paragraph("As much time used: 1:33:00, 45m, 1h20m.", Tone.MUTED))
        yield Input(placeholder="1:33:00", id="words", max_length=20)

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("enter", "go"), ("esc", "stay"))

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(parse_duration(event.value.strip()))
        except ValueError as error:
            self.notify(str(error), severity="warning", markup=False)


class ChangesPage(Dialog[None]):
    """What one snapshot changed against the one before it."""

    size_class = "wide tall"
    DEFAULT_CSS = "ChangesPage RichLog { height: 1fr; background: transparent; }"

    def __init__(self, source: ReplaySource, old: int, new: int) -> None:
        super().__init__()
        self.title_text = f"Snapshot {new} against snapshot {old}"
        self._source, self._old, self._new = source, old, new

    def body(self) -> Iterable[Widget]:
        yield RichLog(id="changes", wrap=False, markup=False, highlight=False)

    def on_mount(self) -> None:
        self.run_worker(self._fill(), exit_on_error=False)

    async def _fill(self) -> None:
        log = self.query_one(RichLog)
        try:
            found = await asyncio.to_thread(compare, self._source.record, self._old, self._new)
            lines = list(diff_lines(found)) or ["no difference"]
        except Exception as error:  # noqa: BLE001 - a damaged store must not end the replay
            lines = [f"cannot compare: {literal(str(error))}"]
        for line in lines:
            # Outside text was made literal before our own colours were put around it.
            log.write(Text.from_ansi(line), scroll_end=False)


class EventsPage(Screen[int]):
    """Every event with its time and the hash it is chained by; enter goes there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e", "close", "close", show=False),
    ]

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        self._source = source

    def compose(self) -> ComposeResult:
        film = self._source.film
        shown = [n for n, event in enumerate(film.events) if any_event(event.body)]
        listed = OptionList(*(Option(self._line(n), id=str(n)) for n in shown), markup=False)
        here = self._source.moment.index
        # Here and not in a style sheet, where the app's rule for all lists would win.
        listed.styles.height, listed.styles.max_height = "1fr", "100%"
        listed.styles.border = ("none", "transparent")
        listed.highlighted = max((place for place, n in enumerate(shown) if n <= here), default=0)
        yield Words([(("  event  at       chained to  by              what", Tone.MUTED),)])
        yield listed

    def _line(self, index: int) -> Text:
        event = self._source.film.events[index]
        text = f"{event.seq:6} {duration(event.elapsed):>8}  {event.prev[:8]}  {one_line(event.by):14.14} "
        return Text(f"{text}{one_line(describe(event))}", no_wrap=True, overflow="ellipsis")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(int(event.option_id or 0))

    def action_close(self) -> None:
        self.dismiss(None)


class ReplayKeysPage(Dialog[None]):
    """Every key of the replay."""

    title_text = "Keys of the replay"

    def body(self) -> Iterable[Widget]:
        yield Words([((f"{key:<18}", Tone.KEY), (what, Tone.TEXT)) for key, what in REPLAY_KEYS])


class ReplayApp(WorkbenchApp):
    """The workbench over a record."""

    def __init__(self, source: ReplaySource, **options: Any) -> None:
        super().__init__(source, **options)
        self._replay = source

    def main_screen(self) -> MainScreen:
        return ReplayScreen(self._replay)

    def action_keys(self) -> None:
        self.push_screen(ReplayKeysPage())

    def _open_page_of(self, view: View) -> None:
        """Open no page for a phase: they ask the participant for something, and here is none."""
