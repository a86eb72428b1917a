"""Time left in big digits; colour and word change together at 60, 15, 5 and 1 minutes."""

from __future__ import annotations

from sessions.record.state import Phase
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Tone, beside, cells, gauge, heading
from workbench.tui.digits import LARGE, SMALL, Face, big, cells_of
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing

_MINUTE = 60_000
LEAST_GAUGE = 8


def urgency(remaining_ms: int, budget_ms: int) -> tuple[str, Tone]:
    """Return the word and tone for what is left; a whole short session is not an emergency."""
    if remaining_ms <= 0:
        return "time is up", Tone.BAD
    for minutes, word, tone in (
        (1, "last minute", Tone.BAD),
        (5, "last 5 minutes", Tone.BAD),
        (15, "last 15 minutes", Tone.WARN),
        (60, "last hour", Tone.ACCENT),
    ):
        if remaining_ms <= minutes * _MINUTE < budget_ms:
            return word, tone
    return "", Tone.STRONG


def standing(view: View) -> tuple[str, Tone, str]:
    """Return label, tone of the digits, and word beside the label."""
    match view.state.phase:
        case Phase.PAUSED:
            return "CLOCK STOPPED", Tone.WARN, "paused"
        case Phase.FINISHING:
            return "TIME LEFT", Tone.MUTED, "frozen"
        case Phase.CLOSED:
            return "TIME LEFT", Tone.MUTED, "closed"
        case Phase.OPENED | Phase.READY:
            return "TIME BUDGET", Tone.MUTED, "clock not started"
        case Phase.RUNNING:
            word, tone = urgency(view.remaining_ms, view.state.clock.budget_ms)
            return "TIME LEFT", tone, word if view.link.up else (word or "estimate")


def countdown(view: View, width: int, height: int) -> list[Line]:
    """Return heading, digits, what was used, and a gauge, in as many lines as there are."""
    label, tone, word = standing(view)
    text = words.countdown(view.remaining_ms)
    face = _face(text, width, height)
    marker: Line = ((word, tone if tone is not Tone.STRONG else Tone.MUTED),) if word else EMPTY
    lines: list[Line] = [heading(label, width, right=marker)]
    if height >= face.rows + 4:
        lines.append(EMPTY)
    lines += [((row, tone),) for row in big(text, face)]
    if height >= face.rows + 5:
        lines.append(EMPTY)
    lines += _used(view, width)
    return lines


def _face(text: str, width: int, height: int) -> Face:
    return LARGE if cells_of(text, LARGE) <= width and height >= LARGE.rows + 3 else SMALL


def _used(view: View, width: int) -> list[Line]:
    """Return what was used and a gauge of it; what it is out of stands beside either, where there is room."""
    state, now = view.state, view.now
    used = _figure("used ", state.elapsed_ms(now))
    both: Line = (*used, *_figure("  paused ", state.paused_ms(now))) if state.pauses else used
    # Figures that were cut would be wrong figures: what does not fit is not said.
    left = both if cells(both) <= width else used
    out_of, tone = _budget(view)
    share = state.elapsed_ms(now) / max(1, state.clock.budget_ms)
    percent: Line = ((f" {int(share * 100)} %", Tone.MUTED),)
    right: Line = ((out_of, tone),)
    if cells(left) + 2 + cells(right) <= width:
        left = beside(left, right, width)
    elif cells(percent) + 1 + cells(right) + LEAST_GAUGE <= width:
        percent = (*percent, (" ", Tone.MUTED), *right)
    bar = gauge(share, max(0, width - cells(percent)), Tone.WARN if state.pause else Tone.ACCENT)
    return [left, (*bar, *percent)]


def _figure(name: str, milliseconds: int) -> Line:
    return (name, Tone.MUTED), (words.clock_time(milliseconds), Tone.TEXT)


def _budget(view: View) -> tuple[str, Tone]:
    """Return what the time used is out of, or what was credited."""
    clock = view.state.clock
    if not clock.credited_ms:
        return f"of {words.spoken_time(clock.budget_ms)}", Tone.MUTED
    sign, tone = ("+", Tone.GOOD) if clock.credited_ms > 0 else ("−", Tone.WARN)
    return f"credit {sign}{words.clock_time(abs(clock.credited_ms))}", tone


class Countdown(Drawing):
    """See `countdown`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return countdown(view, width, height)
