"""The screen experts keep open for hours: time, scores, machine, brief, all from one view."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from workbench.tui.layout import NARROW_TABS, PAGES, SMALLEST, Form
from workbench.tui.view import View
from workbench.tui.widgets.bands import Bands, bands
from workbench.tui.widgets.board import Board
from workbench.tui.widgets.brief import BriefPage
from workbench.tui.widgets.chart import ScoreChart
from workbench.tui.widgets.countdown import Countdown
from workbench.tui.widgets.drawing import Drawing
from workbench.tui.widgets.header import Header
from workbench.tui.widgets.machine import STALE_SECONDS, Machine
from workbench.tui.widgets.pages import FilesPage, NotesPage
from workbench.tui.widgets.rows import Rows
from workbench.tui.widgets.scores import ScoreTable
from workbench.tui.widgets.scoring_panel import ScoringPanel
from workbench.tui.widgets.small import TooSmall
from workbench.tui.widgets.tabs import Keys, Tabs


class MainScreen(Screen[None]):
    """Hands the view to its panels; replay adds panels of its own through `below`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "app.score", "score", show=False),
        Binding("c", "app.check", "check", show=False),
        Binding("n", "app.note", "note", show=False),
        Binding("p", "app.pause", "pause", show=False),
        Binding("r", "app.resume", "resume", show=False),
        Binding("t", "app.shell", "shell", show=False),
        Binding("b", "app.brief", "brief", show=False),
        Binding("f", "files", "files", show=False),
        Binding("d", "details", "diff", show=False),
        Binding("x", "app.cancel", "cancel score", show=False),
        Binding("a", "app.message", "message", show=False),
        Binding("h", "app.health", "health", show=False),
        Binding("S", "app.submit", "submit", show=False),
        Binding("l", "chart('scale')", "log or linear", show=False),
        Binding("z", "chart('zoom')", "zoom", show=False),
        Binding("question_mark,f1", "app.keys", "keys", show=False),
        Binding("q", "app.detach", "detach", show=False),
        Binding("left", "turn(-1)", "page before", show=False),
        Binding("right", "turn(1)", "next page", show=False),
        *(
            Binding(str(number), f"tab('{name}')", name, show=False)
            for number, name in enumerate(NARROW_TABS, 1)
        ),
    ]

    BLANK = True

    def __init__(self) -> None:
        super().__init__()
        self.scores = ScoreTable(id="scores")
        self.chart = ScoreChart(id="chart")
        self.countdown = Countdown(id="countdown")
        self.scoring = ScoringPanel(id="scoring")
        self.tabs = Tabs(NARROW_TABS, clock=True, id="tabs")
        self.pages = Tabs(PAGES, id="pages")
        self.bands = Bands(id="bands")
        self.machine = Machine(id="machine")
        self.notes = NotesPage(id="notes")
        self.board = Board((
            Header(id="header"), self.bands, self.tabs, self.countdown, self.machine, self.chart, self.scores,
            self.scoring, self.pages, BriefPage(id="brief"), self.notes, FilesPage(id="files"),
            Keys(id="keys"),
        ))  # fmt: skip
        self.too_small = TooSmall()
        self._view: View | None = None
        self._minute = -1

    def below(self) -> list[Widget]:
        """Return widgets to dock under the board; replay puts its timeline here."""
        return []

    def compose(self) -> ComposeResult:
        yield self.app.colours  # type: ignore[attr-defined]
        yield self.board
        yield self.too_small
        yield from self.below()

    def on_mount(self) -> None:
        self.too_small.display = False
        self.scores.focus()
        view: View | None = self.app.view  # type: ignore[attr-defined]
        if view is not None:
            self.show(view)

    def on_resize(self) -> None:
        small = self.size.width < SMALLEST[0] or self.size.height < SMALLEST[1]
        self.board.display = not small
        self.too_small.display = small
        if self._view is not None:
            self.too_small.show(self._view)

    def show(self, view: View) -> None:
        """Take a view and hand it down."""
        self._view = view
        if (count := len(bands(view))) != self.board.bands:
            self.board.bands = count
            self.board.place()
        for panel in self.board.children:
            if isinstance(panel, Drawing | Rows):
                panel.show(view)
        if self.too_small.display:
            self.too_small.show(view)

    def tick(self, view: View) -> None:
        """Take a view in which only the time and the figures of the machine are new."""
        sampled = self._view is None or view.sample is not self._view.sample
        self._view = view
        panels: list[Drawing] = [self.countdown, self.tabs]
        minute = view.state.elapsed_ms(view.now) // 60_000
        if minute != self._minute:
            self._minute = minute
            panels.append(self.chart)
        if view.state.pending:
            panels.append(self.scoring)
        if view.state.pause is not None or not view.link.up:
            panels.append(self.bands)
        if sampled or view.stale_seconds > STALE_SECONDS:
            panels.append(self.machine)
        if self.too_small.display:
            panels.append(self.too_small)
        for panel in panels:
            if panel.display:
                panel.show(view)

    def go_to(self, name: str) -> None:
        """Show a page, in whatever form the screen has."""
        if name in PAGES and name != self.pages.left_out:
            self.board.page = name
            self.pages.choose(name)
        if name in NARROW_TABS:
            self.board.tab = name
            self.tabs.choose(name)
        self.board.place()
        target = {"overview": "scores"}.get(name, name)
        if name != "machine" and (self.board.form is Form.NARROW or name in PAGES):
            self.query_one(f"#{target}", Widget).focus()

    @on(Board.Placed)
    def _placed(self, event: Board.Placed) -> None:
        """Where notes have a place of their own they need a title and no tab."""
        wide = event.form is Form.WIDE
        self.notes.titled = wide
        self.pages.left_out = "notes" if wide else ""
        if wide and self.pages.current == "notes":
            self.pages.current = "brief"
        self.notes.redraw()
        self.pages.redraw()

    @on(Tabs.Wanted)
    def _tab_wanted(self, event: Tabs.Wanted) -> None:
        self.go_to(event.name)

    @on(Rows.Chosen)
    def _row_chosen(self, event: Rows.Chosen) -> None:
        if isinstance(event.rows, ScoreTable):
            self.action_details()

    def action_tab(self, name: str) -> None:
        self.go_to(name)

    def action_turn(self, by: int) -> None:
        self.go_to((self.tabs if self.board.form is Form.NARROW else self.pages).step(by))

    def action_files(self) -> None:
        self.go_to("files")
        self.app.look_for_changes()  # type: ignore[attr-defined]

    def action_details(self) -> None:
        number = self.scores.number_at(self.scores.cursor)
        if number is not None:
            self.app.open_details(number)  # type: ignore[attr-defined]

    def action_chart(self, what: str) -> None:
        if what == "scale":
            self.chart.action_scale()
        else:
            self.chart.action_zoom()
