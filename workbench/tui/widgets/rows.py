"""A scrolling list of drawn lines under fixed ones, with a cursor where rows can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.ink.lines import Line, Tone, fit, text_of
from workbench.tui.view import View
from workbench.tui.widgets.drawing import strip_of


class Rows(ScrollView, can_focus=True, inherit_bindings=False):
    """Base of the lists. Subclasses say what the fixed and the scrolling lines are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "edge(-1)", "first", show=False),
        Binding("end,G", "edge(1)", "last", show=False),
        Binding("enter", "choose", "open", show=False),
    ]

    class Chosen(Message):
        """Enter, or a click on the row under the cursor."""

        def __init__(self, rows: Rows, index: int) -> None:
            super().__init__()
            self.rows = rows
            self.index = index

        @property
        def control(self) -> Rows:
            return self.rows

    def __init__(self, *, id: str | None = None, chooses: bool = False) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._view: View | None = None
        self._top: list[Line] = []
        self._items: list[Line] = []
        self._chooses = chooses
        self.cursor = 0

    def fixed(self, view: View, width: int) -> list[Line]:
        """Return the lines that stay in place at the top."""
        return []

    def scrolling(self, view: View, width: int) -> list[Line]:
        """Return the lines that scroll."""
        raise NotImplementedError

    def show(self, view: View) -> None:
        """Take the view and redraw what differs."""
        self._view = view
        self.redraw()

    @property
    def text_width(self) -> int:
        return self.scrollable_content_region.width or self.size.width

    def redraw(self) -> None:
        if self._view is None or not self.size.width or not self.is_attached:
            return
        width = self.text_width
        top = self.fixed(self._view, width)
        items = self.scrolling(self._view, width)
        if top == self._top and items == self._items:
            return
        grew = len(items) - len(self._items)
        resized = len(top) != len(self._top) or grew
        changed = [y for y, (one, other) in enumerate(zip(self._items, items, strict=False)) if one != other]
        tops = [y for y, (one, other) in enumerate(zip(self._top, top, strict=False)) if one != other]
        self._top, self._items = top, items
        self.cursor = max(0, min(self.cursor, len(items) - 1))
        if resized:
            self.virtual_size = Size(0, len(top) + len(items))
            self.refresh()
            return
        for y in tops:
            self.refresh(Region(0, y, self.size.width, 1))
        for index in changed:
            self._refresh_item(index)

    def _refresh_item(self, index: int) -> None:
        y = len(self._top) + index - self.scroll_offset.y
        if len(self._top) <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def on_resize(self) -> None:
        self._top, self._items = [], []
        self.redraw()

    def on_focus(self) -> None:
        self.redraw()
        self.refresh()

    def on_blur(self) -> None:
        self.redraw()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y < len(self._top):
            return strip_of(fit(self._top[y], width), self)
        index = y - len(self._top) + self.scroll_offset.y
        if index >= len(self._items):
            return Strip.blank(width, self.rich_style)
        drawn = fit(self._items[index], width)
        if self._chooses and index == self.cursor:
            drawn = ((text_of(drawn), Tone.CURSOR if self.has_focus else Tone.CURSOR_IDLE),)
        return strip_of(drawn, self)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row and bring it into sight."""
        before, self.cursor = self.cursor, max(0, min(len(self._items) - 1, index))
        self._refresh_item(before)
        self._refresh_item(self.cursor)
        seen = max(1, self.size.height - len(self._top))
        if self.cursor < self.scroll_offset.y:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= self.scroll_offset.y + seen:
            self.scroll_to(y=self.cursor - seen + 1, animate=False)

    def action_move(self, by: int) -> None:
        if self._chooses:
            self.move_to(self.cursor + by)
        else:
            self.scroll_to(y=self.scroll_offset.y + by, animate=False)

    def action_page(self, by: int) -> None:
        step = max(1, self.size.height - len(self._top) - 1) * by
        self.action_move(step)

    def action_edge(self, towards: int) -> None:
        last = len(self._items)
        self.action_move(last if towards > 0 else -last)

    def action_choose(self) -> None:
        if self._chooses and self._items:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: Click) -> None:
        index = event.y - len(self._top) + self.scroll_offset.y
        if not self._chooses or event.y < len(self._top) or index >= len(self._items):
            return
        if index == self.cursor:
            self.action_choose()
        else:
            self.move_to(index)

    def text(self) -> str:
        """Return every line, for tests."""
        return "\n".join(text_of(drawn).rstrip() for drawn in [*self._top, *self._items])


def joined(lines: Sequence[Line]) -> str:
    return "\n".join(text_of(drawn).rstrip() for drawn in lines)
