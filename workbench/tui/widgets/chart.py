"""The score chart as a panel: what it shows comes from the state, how it is looked at is its own."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from workbench.ink import words
from workbench.ink.lines import Line, Tone, heading
from workbench.ink.text import one_line
from workbench.tui.plot import Chart, Scale, Zoom, draw
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing


def chart_of(view: View, scale: Scale, zoom: Zoom) -> Chart:
    """Return what the chart shows of a view; time moves in whole minutes so that an idle screen stays still."""
    state = view.state
    return Chart(
        rows=state.scores,
        direction=state.direction,
        anchors=state.anchors,
        budget_ms=state.clock.budget_ms,
        elapsed_ms=state.elapsed_ms(view.now) // 60_000 * 60_000,
        counted=state.counted.number if state.counted and not state.scores_hidden else None,
        scale=scale,
        zoom=zoom,
        hidden=state.scores_hidden,
    )


class ScoreChart(Drawing, can_focus=True):
    """Heading and chart; `l` changes the scale, `z` the stretch of time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "scale", "log or linear", show=False),
        Binding("z", "zoom", "zoom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self.scale = Scale.LINEAR
        self.zoom = Zoom.SESSION

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        environment = view.state.opened.environment
        chart = chart_of(view, self.scale, self.zoom)
        scale = (
            self.scale.value
            if self.scale is Scale.LINEAR or chart.log
            else "linear: log needs positive scores"
        )
        looks = [] if chart.hidden else [scale] if self.scale is Scale.LOG else []
        looks += [self.zoom.value] if self.zoom is not Zoom.SESSION else []
        detail = f"{one_line(environment.raw_label)}, {words.better(environment.direction)}"
        right: Line = ((" · ".join(looks), Tone.MUTED),) if looks else ()
        top = heading("SCORE", width, detail=detail, right=right, focused=self.has_focus)
        return [top, *draw(chart, width, height - 1)]

    def action_scale(self) -> None:
        self.scale = Scale.LOG if self.scale is Scale.LINEAR else Scale.LINEAR
        self.redraw()

    def action_zoom(self) -> None:
        order = list(Zoom)
        self.zoom = order[(order.index(self.zoom) + 1) % len(order)]
        self.redraw()
