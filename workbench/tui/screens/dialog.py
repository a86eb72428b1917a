"""The base of every dialog: one raised sheet with a title, a body and a line of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widget import Widget

from workbench.ink.lines import EMPTY, Line, Span, Tone
from workbench.ink.text import lines_of, wrap
from workbench.tui.view import View
from workbench.tui.widgets.lines import Words

Result = TypeVar("Result")
MEASURE = 66
"""Width of running text in a dialog."""
SHEET_PERCENT = 94
"""Of the terminal's height that a dialog takes at most, as the stylesheet says."""
TITLE_AND_KEYS = 4


class Matter(Widget, inherit_bindings=False):
    """What stands between title and keys: as high as it is, at most as high as the sheet leaves."""


class Dialog(ModalScreen[Result]):
    """Subclasses give title, body and keys. `escape` closes without a result, `↑ ↓` scroll what is too high."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", show=False),
        Binding("up,k", "scroll_matter(-1)", "up", show=False),
        Binding("down,j", "scroll_matter(1)", "down", show=False),
        Binding("pageup", "scroll_matter(-10)", "page up", show=False),
        Binding("pagedown", "scroll_matter(10)", "page down", show=False),
    ]
    title_text = ""
    size_class = ""

    def body(self) -> Iterable[Widget]:
        """Return what stands between title and keys."""
        return ()

    def keys(self) -> Sequence[tuple[str, str]]:
        """Return the keys of the last line."""
        return (("esc", "close"),)

    def compose(self) -> ComposeResult:
        with Vertical(classes=f"sheet {self.size_class}"):
            yield Words([((self.title_text, Tone.STRONG),), EMPTY], id="title")
            with Matter(id="matter"):
                yield from self.body()
            yield Words([EMPTY, key_line(self.keys())], id="dialog-keys")

    def on_mount(self) -> None:
        """Catch up with what came while the dialog was being built; say when there is more than is shown."""
        self.watch(self.query_one(Matter), "show_vertical_scrollbar", self._say_keys)
        view: View | None = self.app.view  # type: ignore[attr-defined]
        if view is not None:
            self.show(view)

    def on_resize(self, event: Resize) -> None:
        """Leave room for title and keys whatever the height."""
        sheet = self.query_one(".sheet")
        limit = event.size.height * SHEET_PERCENT // 100
        taken = sheet.gutter.height + TITLE_AND_KEYS
        self.query_one(Matter).styles.max_height = max(1, limit - taken)

    def _say_keys(self, scrolls: bool) -> None:
        more = (("↑ ↓", "scroll"),) if scrolls else ()
        self.query_one("#dialog-keys", Words).put([EMPTY, key_line((*self.keys(), *more))])

    def action_scroll_matter(self, by: int) -> None:
        self.query_one(Matter).scroll_relative(y=by, animate=False)

    def show(self, view: View) -> None:
        """Take a newer view; most dialogs show nothing that changes."""

    def tick(self, view: View) -> None:
        """Take a view in which only the time is new."""

    def action_close(self) -> None:
        self.dismiss(None)


def key_line(keys: Sequence[tuple[str, str]]) -> Line:
    spans: list[Span] = []
    for key, what in keys:
        spans += [(key, Tone.KEY), (f" {what}    ", Tone.MUTED)]
    return tuple(spans)


def paragraph(text: str, tone: Tone = Tone.TEXT, measure: int = MEASURE) -> list[Line]:
    """Return outside text wrapped to lines."""
    return [((piece, tone),) for one in lines_of(text) for piece in wrap(one, measure)]


def fact(name: str, *value: Span | str, room: int = 14) -> Line:
    """Return a line `name  value` with names aligned."""
    return (
        (name.ljust(room), Tone.MUTED),
        *((part, Tone.TEXT) if isinstance(part, str) else part for part in value),
    )
