"""Confirmation before submit, and the page after it: final score, survey, closing figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from environments.contract import Counting, ScoreStatus, SurveyQuestion
from sessions.record.events import SnapshotReason
from sessions.record.state import Phase, ScoreRow, SessionState
from workbench.ink import words
from workbench.ink.lines import EMPTY, Line, Span, Tone
from workbench.ink.text import one_line
from workbench.tui.messages import Ask
from workbench.tui.screens.dialog import Dialog, fact, key_line, paragraph
from workbench.tui.source import Mode
from workbench.tui.view import View
from workbench.tui.widgets.lines import Words
from workbench.tui.widgets.rows import Rows

WORD = "submit"
_NOT_JUDGED = {None, ScoreStatus.INFRASTRUCTURE, ScoreStatus.CANCELLED}


def figure_of(row: ScoreRow | None, state: SessionState) -> tuple[Span, ...]:
    """Return a score in words for a fact's value."""
    if state.scores_hidden:
        return (("hidden in this session", Tone.MUTED),)
    if row is None:
        return (("none", Tone.WARN),)
    norm = "" if row.normalised is None else f"  normalised {words.normalised(row.normalised)}"
    return ((words.raw(row.raw), Tone.STRONG), (f"{norm}  #{row.number}", Tone.MUTED))


def submit_lines(view: View) -> list[Line]:
    """Return what a person must know before they end their session."""
    state = view.state
    opened = state.opened
    last = opened.environment.counting is Counting.LAST
    lines = [
        fact(
            "session",
            (one_line(opened.session), Tone.STRONG),
            (f"  {one_line(opened.environment.slug)} · {one_line(opened.participant)}", Tone.MUTED),
        ),
        fact(
            "time left", (words.countdown(view.remaining_ms), Tone.STRONG), (" will be given up", Tone.MUTED)
        ),
        fact("best", *figure_of(state.best, state), "" if last or state.scores_hidden else "  ★ counts"),
        fact("last", *figure_of(state.last_valid, state), "  ★ counts" if last else ""),
        fact("changed", *_changed(view)),
    ]
    if state.pending:
        lines.append(
            fact(
                "running", (f"{words.count(len(state.pending), 'score')} still waiting or running", Tone.WARN)
            )
        )
    return [*lines, EMPTY, *paragraph(
        "The work folder is frozen, a final snapshot is taken and scored. This cannot be undone.")]  # fmt: skip


def _changed(view: View) -> tuple[Span, ...]:
    if view.changed_problem:
        return ((one_line(view.changed_problem), Tone.WARN),)
    if view.changed is None:
        return (("looking for changes …", Tone.MUTED),)
    if not view.changed:
        return (("nothing since the last snapshot", Tone.TEXT),)
    first = ", ".join(one_line(one.path) for one in view.changed[:2])
    more = f" and {view.changed_count - 2} more" if view.changed_count > 2 else ""
    return ((f"{words.count(view.changed_count, 'file')} not yet scored: {first}{more}", Tone.WARN),)


class SubmitDialog(Dialog[bool]):
    """Asks for the word itself, so that no stray key ends eight hours."""

    title_text = "Submit and finish"

    def __init__(self, view: View) -> None:
        super().__init__(classes="-warn")
        self._view = view

    def body(self) -> Iterable[Widget]:
        yield Words(submit_lines(self._view), id="facts")
        yield Input(placeholder=f"type {WORD} to finish", id="words")

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("enter", "submit"), ("esc", "go on working"))

    def show(self, view: View) -> None:
        self.query_one("#facts", Words).put(submit_lines(view))

    def tick(self, view: View) -> None:
        self.show(view)

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() == WORD:
            self.dismiss(True)
        else:
            event.input.value = ""
            event.input.placeholder = f"not submitted: type the word {WORD}"


def questions(state: SessionState) -> tuple[SurveyQuestion, ...]:
    """Return what is asked: the environment's own questions, else one that everybody can answer."""
    return state.opened.environment.survey or (
        SurveyQuestion("remarks", "Anything the people who run this session should know?"),
    )


def scored_already(state: SessionState) -> ScoreRow | None:
    """Return the earlier scoring of the final state, where the final state needed none of its own."""
    ends = {SnapshotReason.SUBMIT, SnapshotReason.DEADLINE}
    final = next((one for one in state.snapshots if one.reason in ends), None)
    if final is None or final.tree is None:
        return None
    same = {one.number for one in state.snapshots if one.tree == final.tree}
    judged = [row for row in state.scores if row.snapshot in same and row.status not in _NOT_JUDGED]
    if any(row.snapshot == final.number for row in judged):
        return None
    return judged[-1] if judged else None


def closing_lines(view: View) -> list[Line]:
    """Return how the session stands after submission or deadline."""
    state = view.state
    ended = state.submitted_at or state.deadline_at or (view.state.last.at if state.closed else None)
    how = "submitted" if state.submitted_at else "time was up" if state.deadline_at else "ended"
    lines = [fact("how", how, (f"  {ended[:16].replace('T', ' ')} UTC" if ended else "", Tone.MUTED))]
    used = words.clock_time(state.elapsed_ms(view.now))
    lines.append(fact("time used", used, (f"  of {words.spoken_time(state.clock.budget_ms)}", Tone.MUTED)))
    lines.append(fact("scores", words.count(sum(1 for row in state.scores if row.number), "call")))
    if state.pending:
        row = state.pending[0]
        stage = one_line(row.stage) or "waiting"
        percent = "" if row.fraction is None else f" {row.fraction * 100:.0f} %"
        lines.append(fact("final score", (f"{stage}{percent}", Tone.ACCENT)))
    elif (judged := scored_already(state)) is not None:
        same = f"of #{judged.number}" if judged.number else "of the starting score"
        lines.append(fact("final state", f"is that {same}, scored already"))
    lines.append(fact("counts", *figure_of(state.counted, state)))
    if state.phase is Phase.CLOSED:
        lines.append(
            fact(
                "record",
                ("closed and sealed", Tone.GOOD),
                (f"  {one_line(state.opened.session)}", Tone.MUTED),
            )
        )
    elif state.survey is not None:
        lines.append(fact("record", ("closing …", Tone.ACCENT)))
    else:
        lines.append(fact("record", ("closes when the answers are sent", Tone.MUTED)))
    return lines


class Choices(Rows):
    """One of several answers; none until somebody chooses."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "choose", "choose", show=False)]

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__(chooses=True)
        self._choices = tuple(choices)
        self.chosen: int | None = None
        self.styles.height = len(self._choices)

    def scrolling(self, view: View, width: int) -> list[Line]:
        marks = ("●" if at == self.chosen else "○" for at in range(len(self._choices)))
        return [
            ((f" {mark} {one_line(choice)}", Tone.TEXT),)
            for mark, choice in zip(marks, self._choices, strict=True)
        ]

    def action_choose(self) -> None:
        self.chosen = self.cursor
        self.redraw()


class Question(Vertical):
    """One question of the survey with its answer."""

    DEFAULT_CSS = "Question { height: auto; } Question Choices { margin: 1 0; width: 60; }"

    def __init__(self, question: SurveyQuestion, view: View) -> None:
        super().__init__()
        self.question = question
        self._view = view

    def compose(self) -> ComposeResult:
        yield Words(paragraph(self.question.ask, Tone.LABEL))
        if self.question.choices:
            yield Choices(self.question.choices)
        else:
            yield Input(placeholder="free text; empty is fine")

    def on_mount(self) -> None:
        for choices in self.query(Choices):
            choices.show(self._view)

    @property
    def answer(self) -> str:
        for choices in self.query(Choices):
            return "" if choices.chosen is None else self.question.choices[choices.chosen]
        return self.query_one(Input).value


class FinishPage(Screen[None]):
    """After the work: what was reached, the survey, and that all is safe."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "send the survey", show=False, priority=True),
        Binding("q,escape", "leave", "leave", show=False),
        Binding("m", "look", "main screen", show=False),
    ]

    def __init__(self, view: View) -> None:
        super().__init__(classes="page")
        self._view = view
        self._sent = False

    @property
    def asks(self) -> bool:
        """Whether the survey is still to be answered."""
        state = self._view.state
        waits = state.survey is None and state.phase is Phase.FINISHING
        return waits and self._view.mode is Mode.LIVE

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Words(self._title(), id="title")
            yield Words(closing_lines(self._view), id="closing")
            if self.asks:
                with Vertical(id="survey"):
                    yield Words([EMPTY, (("A few questions", Tone.STRONG),), EMPTY])
                    for question in questions(self._view.state):
                        yield Question(question, self._view)
        yield Words([self._keys()], id="finish-keys")

    def _title(self) -> list[Line]:
        closed = self._view.state.phase is Phase.CLOSED
        text = "The session is closed. Thank you." if closed else "The work is over"
        return [((text, Tone.STRONG),), EMPTY]

    def _keys(self) -> Line:
        if self.asks:
            return key_line([("tab", "next question"), ("space", "choose"), ("ctrl+s", "send the answers")])
        return key_line([("q", "leave"), ("m", "main screen")])

    def show(self, view: View) -> None:
        self._view = view
        self.query_one("#title", Words).put(self._title())
        self.query_one("#closing", Words).put(closing_lines(view))
        self.query_one("#finish-keys", Words).put([self._keys()])
        if not self.asks:
            for survey in self.query("#survey"):
                survey.display = False

    def action_send(self) -> None:
        if self.asks:
            answers = {each.question.key: each.answer for each in self.query(Question)}
            self.post_message(Ask("survey", {"answers": answers}, done="answers sent"))

    def action_leave(self) -> None:
        self.app.exit(0)

    def action_look(self) -> None:
        self.dismiss(None)
