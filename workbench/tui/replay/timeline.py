"""The whole session on one axis: when the clock ran, scores, notes, pauses, file activity, and the cursor."""

from __future__ import annotations

from environments.contract import ScoreStatus
from sessions.record import events as e
from workbench.ink.events import describe
from workbench.ink.lines import SPARKS, Line, Span, Tone, beside, cells, heading
from workbench.ink.text import cut, one_line
from workbench.ink.words import clock_time
from workbench.review.moments import Film
from workbench.tui.replay.source import ReplaySource
from workbench.tui.view import View
from workbench.tui.widgets.drawing import Drawing

FULL_HEIGHT = 6
SHORT_HEIGHT = 3

LONG_LINE = 130
KEYS = (("space", "play"), (":", "go to"), ("[ ]", "score"), (", .", "event"), ("D", "changes"), ("T", "terminal"), ("e", "events"),
        ("{ }", "snapshot"), ("- +", "speed"))  # fmt: skip

_MARKS: tuple[tuple[type[e.Body], str, Tone], ...] = (
    (e.NoteWritten, "n", Tone.ACCENT),
    (e.CheckRun, "c", Tone.MUTED),
    (e.ShellOpened, "t", Tone.ACCENT),
    (e.MessageSent, "m", Tone.WARN),
    (e.TimeCredited, "±", Tone.WARN),
    (e.RecordingGap, "!", Tone.BAD),
    (e.Interrupted, "!", Tone.BAD),
    (e.HealthChanged, "h", Tone.WARN),
    (e.Submitted, "S", Tone.STRONG),
    (e.DeadlineReached, "T", Tone.STRONG),
)
"""Later ones hide earlier ones where they fall into one cell."""


class Axis:
    """What stands in each cell of the axis, computed once for a width."""

    def __init__(self, film: Film, width: int) -> None:
        self._film = film
        self._width = width
        self.marks: list[Span] = [(" ", Tone.TEXT)] * width
        self.scores: list[Span] = [(" ", Tone.TEXT)] * width
        self.track: list[Span] = [("─", Tone.FAINT)] * width
        self._busy = [0] * width
        self._fill()

    def cell(self, position: int) -> int:
        return min(self._width - 1, position * self._width // max(1, self._film.length))

    def _fill(self) -> None:
        order = {kind: rank for rank, (kind, _, _) in enumerate(_MARKS)}
        looks = {kind: (sign, tone) for kind, sign, tone in _MARKS}
        ranks = [-1] * self._width
        running = False
        filled = 0
        for event, position in zip(self._film.events, self._film.times, strict=True):
            cell, body = self.cell(position), event.body
            if running:
                self._run(filled, cell)
            filled = cell
            running = self._clock_runs(body, running)
            if isinstance(body, e.ScoreRecorded | e.StartingScoreRecorded):
                good = body.status is ScoreStatus.VALID
                self.scores[cell] = ("◆" if good else "×", Tone.GOOD if good else Tone.BAD)
            elif isinstance(body, e.ActivitySeen):
                self._busy[cell] += body.created + body.modified + body.deleted
            elif (rank := order.get(type(body), -1)) > ranks[cell]:
                ranks[cell] = rank
                self.marks[cell] = looks[type(body)]

    def _run(self, first: int, last: int) -> None:
        for cell in range(first, last + 1):
            self.track[cell] = ("━", Tone.ACCENT)

    @staticmethod
    def _clock_runs(body: e.Body, before: bool) -> bool:
        match body:
            case e.ClockStarted() | e.ClockResumed():
                return True
            case e.ClockPaused() | e.DeadlineReached() | e.Submitted() | e.SessionClosed():
                return False
        return before

    def scores_on_track(self) -> list[Span]:
        """Return track and scores in one line, where there is no room for two."""
        return [
            score if score[0] != " " else track for score, track in zip(self.scores, self.track, strict=True)
        ]

    def activity(self) -> Line:
        """Return how much happened to files, on a scale of roots so that a burst does not flatten the rest."""
        most = max(self._busy) or 1
        bars = "".join(" " if not n else SPARKS[min(7, int((n / most) ** 0.5 * 7.99))] for n in self._busy)
        return ((bars, Tone.MUTED),)


class Timeline(Drawing):
    """The axis with the cursor of a replay."""

    def __init__(self, source: ReplaySource) -> None:
        super().__init__(id="timeline")
        # Here and not in a style sheet, where the app's rule for all drawings would win.
        self.styles.dock = "bottom"
        self.styles.height = FULL_HEIGHT
        self.styles.padding = (0, 1)
        self._source = source
        self._axis: Axis | None = None
        self._axis_for = (0, 0)

    def draw(self, view: View, width: int, height: int) -> list[Line]:
        source = self._source
        if (width, source.film.length) != self._axis_for or self._axis is None:
            self._axis, self._axis_for = Axis(source.film, width), (width, source.film.length)
        axis, moment = self._axis, source.moment
        cursor = axis.cell(moment.position)
        happened = f"{moment.index + 1}/{len(source.film.events)}  {one_line(describe(moment.event))}"
        speed = self._speed()
        # A heading leaves out a detail for which it has no room.
        detail = cut(happened, max(0, width - cells(speed) - len("REPLAY") - 5))
        title = heading("REPLAY", width, detail=detail, right=speed)
        track = _with_cursor(axis.track, cursor)
        if height < FULL_HEIGHT:
            return [title, _with_cursor(axis.scores_on_track(), cursor), self._figures(width)][:height]
        return [title, tuple(axis.scores), track, tuple(axis.marks), axis.activity(), self._figures(width)]

    def _speed(self) -> Line:
        source = self._source
        state: Span = ("▶ playing", Tone.GOOD) if source.playing else ("‖ stopped", Tone.MUTED)
        return (state, (f"  {source.speed}x", Tone.TEXT))

    def _figures(self, width: int) -> Line:
        moment, film = self._source.moment, self._source.film
        left: list[Span] = [
            (f"used {clock_time(moment.elapsed_ms)}", Tone.STRONG),
            (f"  {clock_time(moment.position)} of {clock_time(film.length)}", Tone.MUTED),
        ]
        if width >= LONG_LINE:
            left.append((f"  {moment.now.at[:19].replace('T', ' ')} UTC", Tone.MUTED))
        keys: list[Span] = []
        room = width - cells(tuple(left)) - 2
        for key, what in KEYS:
            more: list[Span] = [(key, Tone.KEY), (f" {what}  ", Tone.MUTED)]
            if cells((*keys, *more)) > room:
                break
            keys += more
        return beside(tuple(left), tuple(keys), width)


def _with_cursor(track: list[Span], cursor: int) -> Line:
    return (*track[:cursor], ("●", Tone.STAR), *track[cursor + 1 :])
