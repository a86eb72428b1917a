"""What the scorer is doing: stage, percent, seconds, queue; or how the last score and check went."""

from __future__ import annotations

from environments.contract import ScoreStatus
from sessions.record.clock import parse_utc
from sessions.record.state import ScoreRow, SessionState
from workbench.ink import words
from workbench.ink.lines import Line, Tone, beside, cells, gauge, heading
from workbench.ink.text import cut, one_line
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing


def scoring_lines(view: View, width: int, height: int) -> list[Line]:
    state = view.state
    pending = state.pending
    right: Line = ()
    if len(pending) > 1:
        right = ((f"{len(pending) - 1} waiting", Tone.ACCENT),)
    lines = [heading("SCORING", width, right=right)]
    lines += _busy(view, pending[0], width) if pending else _idle(view, width)
    return lines[:height]


def _busy(view: View, row: ScoreRow, width: int) -> list[Line]:
    seconds = (parse_utc(view.now.at) - parse_utc(row.at)).total_seconds()
    stage = one_line(row.stage) or "waiting for the scorer"
    name = "starting score" if row.number == 0 else f"#{row.number}"
    percent = "" if row.fraction is None else f"  {row.fraction * 100:.0f} %"
    left: Line = ((f"{name}  ", Tone.STRONG), (stage, Tone.TEXT), (percent, Tone.ACCENT))
    cancel = "   [x] cancel" if view.can_act and row.number else ""
    right: Line = ((words.clock_time(int(max(0.0, seconds) * 1000)), Tone.TEXT), (cancel, Tone.MUTED))
    bar: Line = gauge(row.fraction, width) if row.fraction is not None else (("─" * width, Tone.TRACK),)
    return [beside(left, right, width), bar]


def _idle(view: View, width: int) -> list[Line]:
    state = view.state
    lines: list[Line] = []
    last = next((row for row in reversed(state.scores) if not row.pending and row.number), None)
    if last is None:
        offer = " · s scores the work folder as it is, as often as you like" if view.can_act else ""
        lines.append(((f"idle{offer}", Tone.MUTED),))
    else:
        lines.append(_last(last, state, width))
    lines.append(_check(view, width))
    return lines


def _last(row: ScoreRow, state: SessionState, width: int) -> Line:
    good = row.status is ScoreStatus.VALID
    head = f"last #{row.number}  "
    if good and not state.scores_hidden:
        norm = "" if row.normalised is None else f"  norm {words.normalised(row.normalised)}"
        spans: Line = ((head, Tone.MUTED), (words.raw(row.raw) + norm, Tone.STRONG))
        change: Line = ()
        if row.change is not None:
            tone = words.change_tone(row.change, state.direction)
            change = (("  change ", Tone.MUTED), (words.change(row.change), tone))
        # A change without its name could be anything: both, or neither.
        if cells((*spans, *change)) <= width:
            spans = (*spans, *change)
        return (*spans, (f"  {one_line(row.message)}" if row.message else "", Tone.MUTED))
    status = words.status(row.status)
    tone = Tone.TEXT if good else words.STATUS_TONES[row.status or ScoreStatus.CANCELLED]
    message = "" if state.scores_hidden and good else one_line(row.message)
    return ((head, Tone.MUTED), (f"{status}  ", tone), (cut(message, width), Tone.TEXT))


def _check(view: View, width: int) -> Line:
    state = view.state
    check = state.last_check
    if check is None and not view.can_act:
        return (("not checked yet", Tone.MUTED),)
    if check is None:
        return (("c checks files and rules without a score", Tone.FAINT if state.checks else Tone.MUTED),)
    if check.fault:
        return (
            ("check  ", Tone.MUTED),
            ("broke  ", Tone.WARN),
            (cut(one_line(check.fault), width), Tone.TEXT),
        )
    if check.accepted:
        return (
            ("check  ", Tone.MUTED),
            ("accepted", Tone.GOOD),
            (f"  in {words.took(check.seconds)}", Tone.MUTED),
        )
    first = check.problems[0] if check.problems else None
    what = one_line(first.what) + (f" at {one_line(first.where)}" if first.where else "") if first else ""
    more = f" (+{len(check.problems) - 1})" if len(check.problems) > 1 else ""
    return (("check  ", Tone.MUTED), ("not accepted  ", Tone.BAD), (cut(what + more, width), Tone.TEXT))


class ScoringPanel(Drawing):
    """See `scoring_lines`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return scoring_lines(view, width, height)
