"""Drawn lines that take as much height as they need, for dialogs."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from workbench.ink.lines import Line, fit, text_of
from workbench.tui.widgets.drawing import strip_of


class Words(Widget, inherit_bindings=False):
    """A block of lines set once; `put` replaces it."""

    def __init__(self, lines: Sequence[Line], *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id, markup=False)
        self._lines = list(lines)

    def put(self, lines: Sequence[Line]) -> None:
        """Show other lines."""
        if list(lines) != self._lines:
            grew = len(lines) != len(self._lines)
            self._lines = list(lines)
            self.refresh(layout=grew)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        return strip_of(fit(self._lines[y], self.size.width), self)

    def text(self) -> str:
        """Return what is shown, for tests."""
        return "\n".join(text_of(drawn).rstrip() for drawn in self._lines)
