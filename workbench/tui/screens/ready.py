"""Before the clock runs: what this is, how it will be measured, the rules, and one big key to begin."""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from sessions.record.events import Breaks, Interruptions, Isolation, ScoringTime, Variant
from sessions.record.state import ScoreRow, SessionState
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Span, Tone, gauge, heading
from workbench.ink.text import one_line, wrap
from workbench.ink.text import width as width_of
from workbench.tui.digits import LARGE, big
from workbench.tui.markdown import page_of
from workbench.tui.messages import Ask
from workbench.tui.screens.dialog import fact, key_line, paragraph
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing
from workbench.tui.widgets.lines import Words
from workbench.tui.widgets.rows import Rows

_BREAKS = {
    Breaks.ALLOWED: "allowed; the clock stands meanwhile",
    Breaks.PROCTOR: "only a proctor may stop the clock",
    Breaks.NONE: "none",
}
_SCORING = {ScoringTime.COUNTED: "counts as your time", ScoringTime.EXCLUDED: "stops the clock"}
_INTERRUPTIONS = {
    Interruptions.AUTO: "a reboot is credited, the rest counts",
    Interruptions.COUNTED: "count as your time",
    Interruptions.CREDITED: "are credited",
}
_ISOLATION = {
    Isolation.USER: ("user", Tone.GOOD, "the host's files belong to another user"),
    Isolation.SANDBOX: ("sandbox", Tone.GOOD, "shells do not see held-out data and records"),
    Isolation.NONE: ("unprotected", Tone.WARN, "nothing is masked; marked so everywhere"),
}
ROOM = 17


def ready_lines(view: View, width: int, height: int) -> list[Line]:
    """Return the page above its last line of keys; blank lines go first where rows are few, what Enter does never."""
    state = view.state
    environment = state.opened.environment
    measure = min(84, width)
    blank = [EMPTY] if height >= 26 else []
    lines: list[Line] = [
        ((one_line(environment.title), Tone.STRONG),),
        *paragraph(environment.summary, Tone.TEXT, measure),
        EMPTY,
        heading("HOW IT IS MEASURED", measure),
        *blank,
        *_measured(state, measure),
        EMPTY,
        heading("BEFORE YOU BEGIN", measure),
        *blank,
        *_starting(view),
        _rules(state),
        EMPTY,
    ]
    begin = _begin(view, measure, tall=height - len(lines) >= 12)
    room = max(0, height - len(begin))
    while len(lines) > room and EMPTY in lines:
        lines.remove(EMPTY)
    return [*lines[:room], *begin]


def _measured(state: SessionState, measure: int) -> list[Line]:
    opened, environment = state.opened, state.opened.environment
    name, tone, found = _ISOLATION[opened.isolation.level]
    budget = words.spoken_time(state.clock.budget_ms)
    facts: tuple[tuple[str, Span, str], ...] = (
        ("time", (budget, Tone.STRONG), "brief shown at the start; reading it counts"),
        ("profile", _plain(opened.profile), f"on {one_line(opened.hardware.label)}"),
        (
            "score",
            _plain(environment.raw_label),
            f"{words.better(environment.direction)}; {_counting(state)}",
        ),
        ("hand in", _plain(", ".join(environment.deliverables)), ""),
        ("breaks", _plain(_BREAKS[opened.policy.breaks]), ""),
        ("scoring", _plain(_SCORING[opened.policy.scoring_time]), ""),
        ("interruptions", _plain(_INTERRUPTIONS[opened.policy.interruptions]), ""),
        ("isolation", (name, tone), found),
        ("work folder", _plain(opened.work_tree), ""),
    )
    return [line for name, value, remark in facts for line in _whole(name, value, remark, measure)]


def _plain(text: str) -> Span:
    return one_line(text), Tone.TEXT


def _whole(name: str, value: Span, remark: str, measure: int) -> list[Line]:
    """Return a fact on as many lines as it takes: a rule that is cut is no rule."""
    room = max(1, measure - ROOM)
    beside = width_of(value[0]) + 2 + width_of(remark) <= room
    if beside:
        return [fact(name, value, (f"  {remark}" if remark else "", Tone.MUTED), room=ROOM)]
    spans = [(piece, value[1]) for piece in wrap(value[0], room)]
    spans += [(piece, Tone.MUTED) for piece in wrap(remark, room) if remark]
    return [fact("" if at else name, span, room=ROOM) for at, span in enumerate(spans)]


def _counting(state: SessionState) -> str:
    which = f"{state.opened.environment.counting.value} valid score counts"
    if state.opened.policy.variant is Variant.HIDDEN_SCORE or state.opened.environment.scores_hidden:
        return which + "; you will not see scores"
    return which


def _starting(view: View) -> list[Line]:
    """Say how far the starting score is: it costs no time."""
    row = view.state.starting
    hidden = view.state.scores_hidden
    if row is None:
        return [fact("… starting score", *_under_way(view.state.pending), room=ROOM)]
    if row.raw is None and not hidden:
        why = f"  {one_line(row.message)}"
        return [fact("× starting score", (words.status(row.status), Tone.BAD), why, room=ROOM)]
    value = "taken" if hidden else words.raw(row.raw)
    seconds = f"  took {words.took(row.seconds)}"
    return [fact("✓ starting score", (value, Tone.STRONG), (seconds, Tone.MUTED), room=ROOM)]


def _under_way(pending: tuple[ScoreRow, ...]) -> list[Span]:
    stage = one_line(pending[0].stage) if pending and pending[0].stage else "being taken"
    fraction = pending[0].fraction if pending else None
    spans: list[Span] = [(stage, Tone.ACCENT)]
    if fraction is not None:
        spans += [("  ", Tone.TEXT), *gauge(fraction, 24), (f" {fraction * 100:.0f} %", Tone.MUTED)]
    return [*spans, ("  costs no time", Tone.MUTED)]


def _rules(state: SessionState) -> Line:
    if state.consented:
        return fact("✓ rules", "read and agreed to", room=ROOM)
    return fact("… rules", ("press r to read them and agree", Tone.ACCENT), room=ROOM)


def able(view: View) -> bool:
    """Whether the clock can be started now."""
    starting = view.state.starting
    scored = starting is not None and (starting.raw is not None or view.state.scores_hidden)
    return view.state.consented and scored and view.mode is Mode.LIVE and view.link.up


def _begin(view: View, measure: int, *, tall: bool) -> list[Line]:
    """Return what Enter does, as large as there is room for."""
    if view.mode is not Mode.LIVE:
        return [(("the clock has not been started", Tone.MUTED),)]
    if not able(view):
        return paragraph(f"Enter starts the clock once {_missing(view)}.", Tone.MUTED, measure)
    text = "     Press Enter to start the clock     "
    if not tall:
        return [((text.strip().center(40), Tone.BAND_INFO),)]
    digits = big(words.clock_time(view.state.clock.budget_ms), LARGE)
    empty = " " * len(text)
    return [EMPTY, *(((row, Tone.STRONG),) for row in digits), EMPTY, EMPTY,
            *(((row, Tone.BAND_INFO),) for row in (empty, text, empty))]  # fmt: skip


def _missing(view: View) -> str:
    """Return what has to come true before the clock can be started."""
    starting = view.state.starting
    missing = []
    if starting is None:
        missing.append("the starting score is taken")
    elif starting.raw is None and not view.state.scores_hidden:
        missing.append("the starting solution can be scored")
    if not view.state.consented:
        missing.append("you have agreed to the rules")
    return " and ".join(missing) or "the host answers again"


class ReadySheet(Drawing, can_focus=True):
    """See `ready_lines`."""

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        return ready_lines(view, width, height)


class ReadyPage(Screen[None]):
    """Leaves by itself when the clock starts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "begin", "start the clock", show=False),
        Binding("r", "rules", "rules", show=False),
        Binding("q", "app.detach", "detach", show=False),
        Binding("h", "app.health", "health", show=False),
        Binding("question_mark", "app.keys", "keys", show=False),
    ]

    def __init__(self, view: View, rules: str) -> None:
        super().__init__(classes="page")
        self._view = view
        self._rules = rules

    def compose(self) -> ComposeResult:
        yield ReadySheet(id="ready")
        yield Words(
            [key_line((("enter", "start the clock"), ("r", "rules"), ("h", "health"), ("q", "detach")))]
        )

    def on_mount(self) -> None:
        self.query_one(ReadySheet).focus()
        self.show(self._view)

    def show(self, view: View) -> None:
        self._view = view
        self.query_one(ReadySheet).show(view)

    def action_begin(self) -> None:
        if able(self._view):
            self.post_message(Ask("start_clock"))
        elif not self._view.state.consented and self._view.mode is Mode.LIVE:
            self.action_rules()

    def action_rules(self) -> None:
        agreed = self._view.state.consented or self._view.mode is not Mode.LIVE
        self.app.push_screen(RulesPage(self._view, self._rules, agreed=agreed), self._consent)

    def _consent(self, agrees: bool | None) -> None:
        if agrees:
            digest = sha256(self._rules.encode()).hexdigest()
            self.post_message(Ask("consent", {"rules_sha256": digest}))


class RulesText(Rows):
    """The rules, set and scrolling."""

    def __init__(self, rules: str) -> None:
        super().__init__()
        self._rules = rules

    def scrolling(self, view: View, width: int) -> list[Line]:
        return page_of(self._rules, width - 1).lines


class RulesPage(Screen[bool]):
    """Agreement is one explicit key, offered where the rules can be read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "agree", show=False),
        Binding("escape,q", "back", "back", show=False),
    ]

    def __init__(self, view: View, rules: str, *, agreed: bool) -> None:
        super().__init__(classes="page")
        self._view = view
        self._rules = rules
        self._agreed = agreed

    def compose(self) -> ComposeResult:
        yield RulesText(self._rules)
        keys = (
            [("esc", "back")]
            if self._agreed
            else [("y", "I have read the rules and agree to them"), ("esc", "back")]
        )
        yield Words([key_line([*keys, ("↑ ↓", "scroll")])])

    def on_mount(self) -> None:
        text = self.query_one(RulesText)
        text.show(self._view)
        text.focus()

    def show(self, view: View) -> None:
        self._view = view

    def action_agree(self) -> None:
        if not self._agreed:
            self.dismiss(True)

    def action_back(self) -> None:
        self.dismiss(False)
