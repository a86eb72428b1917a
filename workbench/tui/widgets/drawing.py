"""A panel drawn by a pure function of the view; only the cells that changed are sent to the terminal."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from workbench.ink.lines import Line, Tone, block
from workbench.ink.text import plain
from workbench.tui.view import View
from workbench.tui.widgets.colours import Colours


def strip_of(drawn: Line, widget: Widget) -> Strip:
    """Return a line with the colours that the stylesheet gives its tones.

    The last gate: whatever a panel forgot to make plain is made plain here.
    """
    colours: Colours = widget.app.colours  # type: ignore[attr-defined]
    base = widget.rich_style
    return Strip(
        [
            Segment(text if text.isprintable() else plain(text), base + colours.style(tone))
            for text, tone in drawn
            if text
        ]
    )


class Drawing(Widget, inherit_bindings=False):
    """Base of the panels. Subclasses say what to draw; they hold nothing but how it is looked at."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id, classes=classes, markup=False)
        self._view: View | None = None
        self._drawn: list[Line] = []
        self._finished: dict[int, Strip] = {}

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        """Return what the panel shows, at most `height` lines."""
        raise NotImplementedError

    def show(self, view: View) -> None:
        """Take the view and redraw what differs."""
        self._view = view
        self.redraw()

    def redraw(self) -> None:
        """Draw again and refresh the smallest region that covers each line's changes."""
        width, height = self.size
        if self._view is None or not width or not height or not self.is_attached:
            return
        drawn = block(self.draw(self._view, width, height), width, height)
        before, self._drawn = self._drawn, drawn
        if len(before) != len(drawn):
            self._finished.clear()
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(before, drawn, strict=True)):
            if old != new:
                self._finished.pop(y, None)
                left, right = changed_cells(old, new)
                self.refresh(Region(left, y, max(1, right - left), 1))

    def on_resize(self) -> None:
        self._drawn = []
        self._finished.clear()
        self.redraw()

    def notify_style_update(self) -> None:
        self._finished.clear()
        super().notify_style_update()

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self.redraw()

    def render_line(self, y: int) -> Strip:
        if y >= len(self._drawn):
            return Strip.blank(self.size.width, self.rich_style)
        return strip_of(self._drawn[y], self)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return finished lines from our own cache.

        Every change anywhere asks every visible widget for all its lines; what Textual keeps for that serves
        borders, padding and opacity too and costs a screen of panels most of its idle time.
        """
        if self.outer_size != self.size:
            return super().render_lines(crop)
        lines = [self._finished_line(y) for y in range(crop.y, crop.bottom)]
        if crop.x == 0 and crop.width == self.size.width:
            return lines
        return [strip.crop(crop.x, crop.right) for strip in lines]

    def _finished_line(self, y: int) -> Strip:
        strip = self._finished.get(y)
        if strip is None:
            strip = self.render_line(y)
            for line_filter in self.get_line_filters():
                strip = strip.apply_filter(line_filter, self.background_colors[1])
            self._finished[y] = strip
        return strip

    def text(self) -> str:
        """Return what is shown, for tests."""
        return "\n".join("".join(text for text, _ in drawn).rstrip() for drawn in self._drawn)


def changed_cells(old: Line, new: Line) -> tuple[int, int]:
    """Return the first cell that differs, and the cell after the last; whole lines where widths may differ."""
    before, after = _cells(old), _cells(new)
    if before is None or after is None or len(before) != len(after):
        return 0, max(len(before or ()), len(after or ()), sum(len(text) * 2 for text, _ in new))
    differing = [x for x, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    return (differing[0], differing[-1] + 1) if differing else (0, 0)


def _cells(drawn: Line) -> list[tuple[str, Tone]] | None:
    """Return one entry a cell, or None where a character is not one cell wide."""
    if any(
        character > "\u2fff" or "\u0300" <= character <= "\u036f" for text, _ in drawn for character in text
    ):
        return None
    return [(character, tone) for text, tone in drawn for character in text]
