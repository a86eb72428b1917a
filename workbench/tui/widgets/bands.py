"""Full-width lines under the header that say what is wrong or waits for an answer; never silent, never stacked high."""

from __future__ import annotations

from sessions.record.events import Light, Part, PauseReason
from sessions.record.state import Health, Pause, Phase
from workbench.ink import words
from workbench.ink.lines import Line, Tone, fit
from workbench.ink.text import one_line
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing

MOST = 4

_NAMES = {
    Part.RECORDER: "RECORDING",
    Part.SNAPSHOTS: "SNAPSHOTS",
    Part.HOST: "HOST",
    Part.DISK: "DISK",
    Part.GPU: "GPU",
    Part.WATCHING: "FILE WATCHING",
    Part.SCORER: "SCORER",
    Part.GATEWAY: "MODEL GATEWAY",
}
_CONSEQUENCES = {
    Part.RECORDER: "terminals are not being recorded; your work and scores are. Tell the proctor",
    Part.SNAPSHOTS: "snapshots are incomplete; scores may wait. Tell the proctor",
    Part.HOST: "the session's own process has trouble",
    Part.DISK: "free some space in the work folder, or tell the proctor",
    Part.GPU: "figures may be missing; your programs are not touched",
    Part.WATCHING: "the next snapshot is complete all the same",
    Part.SCORER: "nothing is held against you; score again",
    Part.GATEWAY: "calls to models may fail for now",
}
_PAUSES = {
    PauseReason.BREAK: "break",
    PauseReason.INFRASTRUCTURE: "infrastructure trouble",
    PauseReason.PROCTOR: "stopped by the proctor",
    PauseReason.SCORING: "a score is being computed",
    PauseReason.LOST_CONTACT: "contact was lost",
    PauseReason.CRASH: "recovering from a crash",
    PauseReason.API: "waiting for a model service",
}


def bands(view: View) -> list[Line]:
    """Return what must be seen, the most pressing first; tones say how bad, words say what."""
    found: list[tuple[str, str, Tone]] = []
    state = view.state
    if not view.link.up and view.mode is not Mode.REPLAY and state.phase is not Phase.CLOSED:
        found.append(_host_gone(view))
    found += [_trouble(part, health) for part, health in view.troubles() if health.light is Light.RED]
    if view.unread is not None:
        keys = "   [a] acknowledge" if view.can_act else ""
        found.append(
            (f"MESSAGE from {one_line(view.unread.by)}", one_line(view.unread.text) + keys, Tone.BAND_INFO)
        )
    if state.pause is not None:
        found.append(_paused(view, state.pause))
    if state.phase is Phase.FINISHING:
        found.append(_finishing(view))
    if state.phase is Phase.CLOSED:
        found.append(("CLOSED", one_line(state.closed.reason) if state.closed else "", Tone.BAND_INFO))
    found += [_trouble(part, health) for part, health in view.troubles() if health.light is Light.AMBER]
    if len(found) > MOST:
        rest = len(found) - MOST + 1
        found = [
            *found[: MOST - 1],
            ("AND", f"{words.count(rest, 'more notice')}: press h to see all", Tone.BAND_WARN),
        ]
    return [_band(*each) for each in found]


def _band(label: str, text: str, tone: Tone) -> Line:
    return ((f"  {_MARKS[tone]} {label}  {text}", tone),)


_MARKS = {Tone.BAND_BAD: "■", Tone.BAND_WARN: "▲", Tone.BAND_INFO: "◆"}


def _host_gone(view: View) -> tuple[str, str, Tone]:
    attempt = f", attempt {view.link.attempt}" if view.link.attempt > 1 else ""
    why = f" ({one_line(view.link.why)})" if view.link.why else ""
    text = f"reconnecting{attempt} · files and record are safe, keep working; the clock below is an estimate{why}"
    return "HOST GONE", text, Tone.BAND_BAD


def _trouble(part: Part, health: Health) -> tuple[str, str, Tone]:
    reason = one_line(health.reason)
    text = f"{reason} · {_CONSEQUENCES[part]}" if reason else _CONSEQUENCES[part]
    return _NAMES[part], text, Tone.BAND_BAD if health.light is Light.RED else Tone.BAND_WARN


def _paused(view: View, pause: Pause) -> tuple[str, str, Tone]:
    # Who can resume comes first where it is somebody else: times and notes may be cut at the edge.
    parts = [_PAUSES[pause.reason]]
    if view.can_act and not view.can_resume:
        parts.append(_resumed_by(pause))
    parts.append(f"{words.clock_time(pause.milliseconds(view.now))} since {pause.began.at[11:16]} UTC")
    if pause.note:
        parts.append(one_line(pause.note))
    return "PAUSED", " · ".join(parts) + ("   [r] resume" if view.can_resume else ""), Tone.BAND_WARN


def _resumed_by(pause: Pause) -> str:
    """Return who lets the clock run again where the participant may not."""
    if pause.reason is PauseReason.SCORING:
        return "goes on by itself when the score is in"
    return f"only {'the proctor' if pause.by == 'proctor' else one_line(pause.by)} can resume"


def _finishing(view: View) -> tuple[str, str, Tone]:
    if view.state.deadline_at is not None:
        what = f"the work folder was frozen at the deadline ({view.state.deadline_at[11:16]} UTC)"
        return "TIME IS UP", f"{what}; the final score is being taken", Tone.BAND_WARN
    return "SUBMITTED", "the work folder is frozen; the final score is being taken", Tone.BAND_INFO


class Bands(Drawing):
    """See `bands`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return [tuple((text, band[0][1]) for text, _ in fit(band, width)) for band in bands(view)[:height]]
