"""One scoring in full: message, figures, what changed since the scoring before and since the best."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from environments.contract import ScoreStatus
from sessions.clients.client import HostGone
from sessions.clients.protocol import Refusal
from sessions.record.state import ScoreRow, SessionState
from workbench.ink import figures, words
from workbench.ink.lines import EMPTY, Line, Span, Tone, folded
from workbench.ink.text import one_line, plain
from workbench.review.changes import patch_lines
from workbench.tui.screens.dialog import fact, key_line, paragraph
from workbench.tui.source import Source
from workbench.tui.view import View
from workbench.tui.widgets.lines import Words
from workbench.tui.widgets.rows import Rows

_KINDS = {"added": ("+", Tone.GOOD), "removed": ("-", Tone.BAD), "modified": ("~", Tone.ACCENT)}
PATCH_LINES = 4_000
MEASURE = 88


class Against(msgspec.Struct, frozen=True):
    """A diff to show: what it is against, and what came back."""

    title: str
    changes: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    truncated: int = 0
    unlisted: int = 0


def details_lines(row: ScoreRow, state: SessionState, width: int = MEASURE) -> list[Line]:
    """Return the figures and the message, its words within `width` cells."""
    measure = max(1, min(MEASURE, width))
    hidden = state.scores_hidden
    star = "  ★ counts" if state.counted and state.counted.number == row.number and not hidden else ""
    lines = [fact("asked", "before the clock" if row.number == 0 else words.clock_time(row.elapsed_ms),
                  (f"  {row.at[:19].replace('T', ' ')} UTC", Tone.MUTED))]  # fmt: skip
    lines.append(fact("status", _status(row)))
    if not hidden:
        lines.append(fact("raw", (words.raw(row.raw), Tone.STRONG), (star, Tone.STAR)))
        lines.append(fact("normalised", words.normalised(row.normalised)))
        if row.change is not None:
            lines.append(fact("change", (words.change(row.change), words.change_tone(row.change, state.direction)),
                              ("  against the valid score before", Tone.MUTED)))  # fmt: skip
        if (
            state.best
            and state.best.raw is not None
            and row.raw is not None
            and state.best.number != row.number
        ):
            gap = row.raw - state.best.raw
            lines.append(fact("to best", (words.change(gap), words.change_tone(gap, state.direction)),
                              (f"  #{state.best.number} with {words.raw(state.best.raw)}", Tone.MUTED)))  # fmt: skip
    lines.append(fact("took", words.took(row.seconds) if row.seconds is not None else words.MISSING))
    lines.append(
        fact("snapshot", one_line(row.commit or words.MISSING), (f"  number {row.snapshot}", Tone.MUTED))
    )
    if row.note:
        lines += [EMPTY, ((("YOUR NOTE"), Tone.LABEL),), *paragraph(row.note, measure=measure)]
    if row.message and not (hidden and row.status is ScoreStatus.VALID):
        lines += [EMPTY, (("MESSAGE", Tone.LABEL),), *paragraph(row.message, measure=measure)]
    return lines


def _status(row: ScoreRow) -> Span:
    if row.status is not None:
        return words.status(row.status), words.STATUS_TONES[row.status]
    percent = "" if row.fraction is None else f" {row.fraction * 100:.0f} %"
    return (
        f"running: {one_line(row.stage)}{percent}" if row.stage else "waiting for the scorer"
    ), Tone.ACCENT


def diff_lines(against: Against) -> list[Line]:
    """Return a tree of changes, then the patches."""
    lines: list[Line] = [((one_line(against.title), Tone.LABEL),)]
    if against.problem:
        return [*lines, ((one_line(against.problem), Tone.WARN),)]
    if not against.changes:
        return [*lines, (("no difference", Tone.MUTED),)]
    lines += [_change(change) for change in against.changes]
    if against.unlisted:
        lines.append(((f"and {against.unlisted} more files", Tone.MUTED),))
    for change in against.changes:
        if change.get("patch"):
            lines += [EMPTY, *_patch(str(change["patch"]))]
    if against.truncated:
        lines += [EMPTY, ((f"{against.truncated} more patches are left out", Tone.MUTED),)]
    return lines


def _change(change: dict[str, Any]) -> Line:
    mark, tone = _KINDS.get(str(change.get("kind")), ("!", Tone.WARN))
    old, new = change.get("old_size"), change.get("new_size")
    sizes = " → ".join(figures.size(one) for one in (old, new) if one is not None)
    spans: list[Span] = [
        (f"{mark} ", tone),
        (one_line(str(change.get("path", ""))), Tone.TEXT),
        (f"  {sizes}", Tone.MUTED),
    ]
    if change.get("is_binary") or change.get("is_large"):
        digest = str(change.get("new_digest") or change.get("old_digest") or "")
        spans.append((f"  {one_line(digest)[:20]}", Tone.MUTED))
    return tuple(spans)


def _patch(patch: str) -> list[Line]:
    found = patch_lines(patch)
    drawn = [_patch_line(plain(one)) for one in found[:PATCH_LINES]]
    if len(found) > PATCH_LINES:
        drawn.append(((f"… {len(found) - PATCH_LINES} more lines", Tone.MUTED),))
    return drawn


def _patch_line(one: str) -> Line:
    if one.startswith(("+++", "---", "diff ")):
        return ((one, Tone.MUTED),)
    if one.startswith("@@"):
        return ((one, Tone.REFERENCE),)
    return ((one, Tone.GOOD if one.startswith("+") else Tone.BAD if one.startswith("-") else Tone.TEXT),)


class DetailsText(Rows):
    """Everything about the scoring, scrolling."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.diffs: tuple[Against, ...] = ()

    def scrolling(self, view: View, width: int) -> list[Line]:
        row = view.state.scores[self.number] if self.number < len(view.state.scores) else None
        if row is None:
            return [(("this score has not been asked for yet", Tone.MUTED),)]
        lines = details_lines(row, view.state, width - 1)
        for against in self.diffs:
            lines += [EMPTY, *diff_lines(against)]
        return [piece for drawn in lines for piece in folded(drawn, max(2, width))]


class DetailsPage(Screen[None]):
    """`y` copies the snapshot's id; `↑ ↓` scroll; `[ ]` go to the scoring before and after."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", show=False),
        Binding("y", "copy", "copy snapshot id", show=False),
        Binding("left_square_bracket,left", "step(-1)", "score before", show=False),
        Binding("right_square_bracket,right", "step(1)", "next score", show=False),
    ]

    def __init__(self, view: View, number: int, source: Source) -> None:
        super().__init__(classes="page")
        self._view = view
        self._source = source
        self._number = number

    def compose(self) -> ComposeResult:
        yield Words(self._title(), id="title")
        yield DetailsText(self._number)
        yield Words(
            [
                EMPTY,
                key_line(
                    (("esc", "back"), ("y", "copy snapshot id"), ("← →", "other scores"), ("↑ ↓", "scroll"))
                ),
            ]
        )

    def _title(self) -> list[Line]:
        name = "Starting score" if self._number == 0 else f"Score #{self._number}"
        return [((name, Tone.STRONG),), EMPTY]

    def on_mount(self) -> None:
        text = self.query_one(DetailsText)
        text.show(self._view)
        text.focus()
        self._load()

    def show(self, view: View) -> None:
        self._view = view
        self.query_one(DetailsText).show(view)

    @property
    def row(self) -> ScoreRow | None:
        scores = self._view.state.scores
        return scores[self._number] if self._number < len(scores) else None

    def _load(self) -> None:
        self.run_worker(self._compare(self._number), exclusive=True)

    async def _compare(self, number: int) -> None:
        state = self._view.state
        row = self.row
        if row is None or row.snapshot is None:
            return
        before = next(
            (other for other in reversed(state.scores[:number]) if other.snapshot is not None), None
        )
        targets = [(before, "SINCE THE SCORE BEFORE")] if before else []
        best = state.best
        if (
            best
            and not state.scores_hidden
            and best.number not in {number, before.number if before else None}
        ):
            targets.append((best, "SINCE THE BEST"))
        found = []
        for other, title in targets:
            if other.snapshot is not None:
                found.append(
                    await self._ask(other.snapshot, row.snapshot, f"{title} · #{other.number} → #{number}")
                )
        text = self.query_one(DetailsText)
        if text.number == number:
            text.diffs = tuple(found)
            text.show(self._view)

    async def _ask(self, old: int, new: int, title: str) -> Against:
        try:
            answer = await self._source.request("diff", old=old, new=new)
        except (Refusal, HostGone) as error:
            return Against(title, problem=str(error))
        return Against(
            title,
            tuple(answer.get("changes", ())),
            truncated=int(answer.get("truncated", 0)),
            unlisted=int(answer.get("unlisted", 0)),
        )

    def action_copy(self) -> None:
        row = self.row
        if row and row.commit:
            self.app.copy_to_clipboard(row.commit)
            self.app.notify(f"snapshot id copied: {row.commit}", markup=False)

    def action_step(self, by: int) -> None:
        number = self._number + by
        if 0 <= number < len(self._view.state.scores):
            self._number = number
            text = self.query_one(DetailsText)
            text.number, text.diffs = number, ()
            text.scroll_to(y=0, animate=False)
            text.show(self._view)
            self.query_one("#title", Words).put(self._title())
            self._load()

    def action_back(self) -> None:
        self.dismiss(None)
