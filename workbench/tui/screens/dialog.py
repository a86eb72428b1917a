"""The base of every dialog: one raised sheet with a title, a body and a line of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from workbench.tui.ink import EMPTY, Line, Span, Tone
from workbench.tui.text import lines_of, wrap
from workbench.tui.view import View
from workbench.tui.widgets.lines import Words

Result = TypeVar("Result")
MEASURE = 66
"""Width of running text in a dialog."""


class Dialog(ModalScreen[Result]):
    """Subclasses give title, body and keys. `escape` closes without a result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "close", show=False)]
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
            yield from self.body()
            yield Words([EMPTY, key_line(self.keys())], id="dialog-keys")

    def on_mount(self) -> None:
        """Catch up with what came while the dialog was being built."""
        view: View | None = self.app.view  # type: ignore[attr-defined]
        if view is not None:
            self.show(view)

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
