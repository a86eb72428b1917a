"""The first line: what is worked on, whether everything is well, and whose session it is."""

from __future__ import annotations

from sessions.record.events import Isolation, Light, Part
from sessions.record.state import Health
from workbench.ink.lines import Line, Span, Tone, beside, cells
from workbench.ink.text import cut, plain
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing

LIGHTS = ((Part.RECORDER, "recording"), (Part.SNAPSHOTS, "snapshots"), (Part.HOST, "host"))
_MARKS = {Light.GREEN: ("●", Tone.GOOD), Light.AMBER: ("▲", Tone.WARN), Light.RED: ("■", Tone.BAD)}


def light_of(view: View, part: Part) -> Light:
    """Return a part's light; a host that does not answer is red whatever it last said."""
    if part is Part.HOST and not view.link.up:
        return Light.RED
    health: Health | None = view.state.health.get(part)
    return health.light if health else Light.GREEN


def lights(view: View, *, brief: bool = False) -> Line:
    """Return the three lights; what is not green is named, also when brief, and again in a band below."""
    spans: list[Span] = []
    for part, name in LIGHTS:
        light = light_of(view, part)
        mark, tone = _MARKS[light]
        green = light is Light.GREEN
        named = "" if brief and green else f"{name}  "
        spans += [(f"{mark} ", tone), (named, Tone.MUTED if green else tone)]
    return tuple(spans)


def header(view: View, width: int) -> Line:
    opened = view.state.opened
    isolation = opened.isolation.level
    edge = "  " if width >= 100 else " "
    left: list[Span] = [
        (edge + cut(plain(opened.environment.slug), max(12, width // 3)), Tone.STRONG),
        (f"  {plain(opened.profile)} · ", Tone.MUTED),
        ("unprotected", Tone.WARN) if isolation is Isolation.NONE else (isolation.value, Tone.MUTED),
    ]
    if view.mode is not Mode.LIVE:
        left.append((f"  {view.mode.value.upper()}", Tone.ACCENT))
    session = plain(opened.session)
    who: Line = (cut(plain(opened.participant), 16), Tone.TEXT), (f" · {session}{edge}", Tone.MUTED)
    alone: Line = ((f"{session}{edge}", Tone.MUTED),)
    gap: Line = (("    ", Tone.TEXT),)
    # Which session this is outlives whose it is, and both outlive the names of lights that are green.
    for right in (
        (*lights(view), *gap, *who),
        (*lights(view), *who),
        (*lights(view), *alone),
        (*lights(view, brief=True), *who),
        (*lights(view, brief=True), *alone),
    ):
        if cells(tuple(left)) + cells(right) + 1 <= width:
            return beside(tuple(left), right, width)
    return beside(tuple(left), right, width)


class Header(Drawing):
    """See `header`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return [header(view, width)]
