"""What stands on a terminal too small for anything else: the time, and how much more room is needed."""

from __future__ import annotations

from sessions.record.state import Phase
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Span, Tone, cells
from workbench.tui.layout import SMALLEST
from workbench.tui.view import View
from workbench.tui.widgets.countdown import urgency
from workbench.tui.widgets.drawing import Drawing


class TooSmall(Drawing):
    """See the module."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        _, tone = urgency(view.remaining_ms, view.state.clock.budget_ms)
        stands = "PAUSED " if view.state.phase is Phase.PAUSED else ""
        wanted = f"needs {SMALLEST[0]}x{SMALLEST[1]}, has {width}x{height}"
        spans: list[Span] = [
            (stands + words.countdown(view.remaining_ms), tone),
            ("terminal too small", Tone.MUTED),
            (wanted, Tone.MUTED),
        ]
        middle = [((" " * max(0, (width - cells((span,))) // 2), Tone.TEXT), span) for span in spans]
        return [EMPTY] * max(0, (height - 3) // 2) + middle
