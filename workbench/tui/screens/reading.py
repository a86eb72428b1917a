"""The brief on a page of its own: contents at the side, search, comfortable measure."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input

from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Tone
from workbench.ink.text import cut
from workbench.tui.screens.dialog import key_line
from workbench.tui.view import View
from workbench.tui.widgets.brief import BriefPage
from workbench.tui.widgets.lines import Words
from workbench.tui.widgets.rows import Rows


class Contents(Rows):
    """The brief's headings."""

    def __init__(self, brief: BriefPage) -> None:
        super().__init__(id="contents", chooses=True)
        self._brief = brief

    def fixed(self, view: View, width: int) -> list[Line]:
        return [(("CONTENTS", Tone.LABEL),), EMPTY]

    def scrolling(self, view: View, width: int) -> list[Line]:
        return [
            ((cut("  " * (heading.level - 1) + heading.text, width), Tone.TEXT),)
            for heading in self._brief.headings
        ]


class ReadingPage(Screen[None]):
    """`/` searches, `n` finds the next, `tab` goes between contents and text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b", "back", "back", show=False),
        Binding("slash", "search", "search", show=False),
        Binding("n", "next", "next find", show=False),
    ]
    DEFAULT_CSS = """
    ReadingPage #contents { width: 30; margin-right: 3; }
    ReadingPage #sought { display: none; dock: bottom; }
    ReadingPage.-narrow #contents { display: none; }
    """

    def __init__(self, view: View) -> None:
        super().__init__(classes="page")
        self._view = view
        self._brief = BriefPage(id="text")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Contents(self._brief)
            yield self._brief
        yield Input(placeholder="search the brief", id="sought")
        yield Words(
            [
                EMPTY,
                key_line(
                    (
                        ("esc", "back"),
                        ("/", "search"),
                        ("n", "next"),
                        ("[ ]", "headings"),
                        ("tab", "contents"),
                    )
                ),
            ]
        )

    def on_mount(self) -> None:
        self._brief.focus()
        self.call_after_refresh(self.show, self._view)

    def on_resize(self) -> None:
        self.set_class(self.size.width < 100, "-narrow")
        self.call_after_refresh(self.show, self._view)

    def show(self, view: View) -> None:
        self._view = view
        self._brief.show(view)
        self.query_one(Contents).show(view)

    @on(Rows.Chosen)
    def _jump(self, event: Rows.Chosen) -> None:
        if isinstance(event.rows, Contents):
            self._brief.go_to(self._brief.headings[event.index])
            self._brief.focus()

    def action_search(self) -> None:
        field = self.query_one("#sought", Input)
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def _search(self, event: Input.Submitted) -> None:
        event.input.display = False
        self._brief.focus()
        found = self._brief.search(event.value)
        self.app.notify(
            words.count(found, "line") + " found" if event.value.strip() else "search cleared", markup=False
        )

    def action_next(self) -> None:
        self._brief.search(self._brief.sought)

    def action_back(self) -> None:
        field = self.query_one("#sought", Input)
        if field.display:
            field.display = False
            self._brief.focus()
        else:
            self.dismiss(None)
