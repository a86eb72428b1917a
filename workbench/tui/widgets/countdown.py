"""Time left in big digits; colour and word change together at 60, 15, 5 and 1 minutes."""

from __future__ import annotations

from sessions.record.state import Phase
from workbench.tui import words
from workbench.tui.digits import LARGE, SMALL, Face, big, cells_of
from workbench.tui.ink import EMPTY, Line, Span, Tone, beside, cells, gauge, heading
from workbench.tui.text import width as width_of
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing

_MINUTE = 60_000


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
    state, now = view.state, view.now
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
    lines.append(_used(view, width))
    budget = max(1, state.clock.budget_ms)
    share = state.elapsed_ms(now) / budget
    percent = f" {int(share * 100)} %"
    bar = gauge(share, max(0, width - len(percent)), Tone.WARN if state.pause else Tone.ACCENT)
    lines.append((*bar, (percent, Tone.MUTED)))
    return lines


def _face(text: str, width: int, height: int) -> Face:
    return LARGE if cells_of(text, LARGE) <= width and height >= LARGE.rows + 3 else SMALL


def _used(view: View, width: int) -> Line:
    state, now = view.state, view.now
    said = words.clock_time if width >= 36 else words.short_time
    left: list[Span] = [("used ", Tone.MUTED), (said(state.elapsed_ms(now)), Tone.TEXT)]
    if state.pauses:
        left += [("  paused ", Tone.MUTED), (said(state.paused_ms(now)), Tone.TEXT)]
    said_right, tone = _budget(view)
    room = width - cells(tuple(left)) - 1
    # Figures that were cut would be wrong figures: what does not fit is said shorter, or not at all.
    right = next((text for text in said_right if width_of(text) <= room), "")
    return beside(tuple(left), ((right, tone),), width)


def _budget(view: View) -> tuple[tuple[str, ...], Tone]:
    """Return what the time used is out of, or what was credited, the longest wording first."""
    clock = view.state.clock
    if clock.credited_ms:
        sign = "+" if clock.credited_ms > 0 else "−"
        minutes = words.short_time(abs(clock.credited_ms))
        tone = Tone.GOOD if sign == "+" else Tone.WARN
        return (f"credit {sign}{minutes}", f"{sign}{minutes}"), tone
    return (f"of {words.spoken_time(clock.budget_ms)}", f"of {words.short_time(clock.budget_ms)}"), Tone.MUTED


class Countdown(Drawing):
    """See `countdown`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return countdown(view, width, height)
