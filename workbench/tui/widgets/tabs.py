"""One line of tabs, and the footer's line of keys."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click
from textual.message import Message

from sessions.record.state import Phase
from workbench.ink import words
from workbench.ink.lines import Line, Span, Tone, beside, cells, fit
from workbench.ink.text import width as cells_of
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.countdown import urgency
from workbench.tui.widgets.drawing import Drawing


class Tabs(Drawing):
    """Names of pages; the one shown stands out by more than colour."""

    class Wanted(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str], *, clock: bool = False, id: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self.names = tuple(names)
        self.left_out = ""
        """A page that has a place of its own now."""
        self.current = self.names[0]
        self._clock = clock

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        spans: list[Span] = []
        for name in self.shown:
            here = name == self.current
            spans.append((name.upper(), Tone.FOCUS if here else Tone.MUTED))
            count = _count(name, view)
            spans.append((f" {count}" if count else "", Tone.MUTED))
            spans.append(("   ", Tone.TEXT))
        if not self._clock:
            rule = width - cells(tuple(spans))
            return [fit((*spans, ("─" * max(0, rule), Tone.FAINT)), width)]
        word, tone = urgency(view.remaining_ms, view.state.clock.budget_ms)
        left = words.countdown(view.remaining_ms)
        stands = view.state.phase is Phase.PAUSED
        right: Line = (
            ("PAUSED ", Tone.WARN) if stands else (f"{word} ", tone),
            (left, Tone.WARN if stands else tone),
        )
        return [beside(tuple(spans), right, width)]

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name != self.left_out)

    def choose(self, name: str) -> None:
        self.current = name
        self.redraw()

    def step(self, by: int) -> str:
        """Return the name beside the current one."""
        names = self.shown
        at = names.index(self.current) if self.current in names else 0
        return names[(at + by) % len(names)]

    def on_click(self, event: Click) -> None:
        at = 0
        for name in self.shown:
            count = _count(name, self._view) if self._view else 0
            at += len(name) + (cells_of(f" {count}") if count else 0) + 3
            if event.x < at - 1:
                self.post_message(self.Wanted(name))
                return


def _count(name: str, view: View) -> int:
    if name == "notes":
        return len(view.state.notes)
    if name == "files":
        return view.changed_count
    return 0


def keys_for(view: View) -> list[tuple[str, str]]:
    """Return the keys that do something now, in the order in which they are shown."""
    phase = view.state.phase
    if view.mode is not Mode.LIVE or phase is Phase.CLOSED:
        return [
            ("enter", "details"),
            ("b", "brief"),
            ("l", "log"),
            ("z", "zoom"),
            ("?", "keys"),
            ("q", "quit"),
        ]
    if phase is Phase.PAUSED:
        resume = [("r", "resume")] if view.can_resume else []
        return [*resume, ("n", "note"), ("t", "shell"), ("b", "brief"), ("?", "keys"), ("q", "detach")]
    if phase is Phase.FINISHING:
        return [("enter", "details"), ("n", "note"), ("?", "keys"), ("q", "detach")]
    return [
        ("s", "score"), ("c", "check"), ("n", "note"), ("p", "pause"), ("t", "shell"), ("b", "brief"),
        ("?", "keys"), ("f", "files"), ("enter", "details"), ("S", "submit"), ("q", "detach"),
    ]  # fmt: skip


GIVING_WAY = ("enter", "f", "z", "l", "b", "t", "n", "c", "p", "r", "s", "S", "?")
"""Which key leaves the footer first where it is narrow; `?` names all of them, so it leaves last."""


class Keys(Drawing):
    """The footer."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return [key_line(keys_for(view), width)]


def key_line(keys: Sequence[tuple[str, str]], width: int) -> Line:
    """Return the keys that fit; the last one stands at the right, and the less important leave first."""
    *most, last = keys
    edge = "  " if width >= 100 else " "
    right: Line = ((last[0], Tone.KEY), (f" {last[1]}{edge}", Tone.MUTED))
    spans: list[Span] = []
    for leaving in (None, *GIVING_WAY):
        most = [each for each in most if each[0] != leaving]
        spans = []
        for key, what in most:
            spans += [(("   " if spans else edge), Tone.TEXT), (key, Tone.KEY), (f" {what}", Tone.MUTED)]
        if cells(tuple(spans)) + 2 + cells(right) <= width:
            break
    return beside(tuple(spans), right, width)
