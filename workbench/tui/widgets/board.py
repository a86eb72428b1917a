"""The main screen's container: gives each panel the region that `layout.places` says."""

from __future__ import annotations

from collections.abc import Iterable

from textual.events import Resize
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.widget import Widget

from workbench.tui.layout import Form, form_of, places


class _Placed(Layout):
    """Puts children where the board says."""

    name = "placed"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        assert isinstance(parent, Board)
        regions = parent.regions(size)
        return [
            WidgetPlacement(regions[child.id], NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id in regions
        ]


class Board(Widget, inherit_bindings=False):
    """Holds the panels; `tab`, `page` and the number of bands decide with the size what is shown."""

    BLANK = True

    class Placed(Message):
        """The panels have new places."""

        def __init__(self, form: Form) -> None:
            super().__init__()
            self.form = form

    def __init__(self, panels: Iterable[Widget]) -> None:
        super().__init__(*panels)
        self._placed = _Placed()
        self.tab = "overview"
        self.page = "brief"
        self.bands = 0

    @property
    def layout(self) -> Layout:
        return self._placed

    @property
    def form(self) -> Form:
        return form_of(self.size.width, self.size.height)

    def regions(self, size: Size) -> dict[str, Region]:
        return places(size.width, size.height, bands=self.bands, tab=self.tab, page=self.page)

    def on_resize(self, event: Resize) -> None:
        self.place(event.size)

    def place(self, size: Size | None = None) -> None:
        """Show the panels that have a place and lay them out again."""
        shown = self.regions(size or self.size)
        for child in self.children:
            child.display = child.id in shown
        self.post_message(self.Placed(form_of(*(size or self.size))))
        self.refresh(layout=True)
