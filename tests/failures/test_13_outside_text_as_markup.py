"""Textualize/textual 5581 and kin: outside text parsed as markup crashed the app. Here it is shown literally."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from environments.contract import Problem, ScoreStatus, SurveyQuestion
from sessions.record.events import (
    ClockPaused,
    Hardware,
    HealthChanged,
    Isolation,
    IsolationFound,
    Light,
    MessageSent,
    Part,
    PauseReason,
    SessionClosed,
    Submitted,
)
from sessions.telemetry.samples import Gpu, GpuProcess, Sample
from tests.workbench.tui.story import Story, machine_sample, spec
from tests.workbench.tui.support import screen_text, showing, until
from workbench.ink.lines import Line, block, text_of
from workbench.ink.text import fit, lines_of, one_line, plain, wrap
from workbench.tui.markdown import page_of
from workbench.tui.screens.details import Against, details_lines, diff_lines
from workbench.tui.screens.prompts import health_lines
from workbench.tui.screens.ready import ready_lines
from workbench.tui.screens.submitting import closing_lines, submit_lines
from workbench.tui.scripted import ScriptedSource
from workbench.tui.view import ChangedFile, Link, View
from workbench.tui.widgets.bands import Bands
from workbench.tui.widgets.brief import BriefPage, marked
from workbench.tui.widgets.chart import ScoreChart
from workbench.tui.widgets.countdown import Countdown
from workbench.tui.widgets.drawing import Drawing
from workbench.tui.widgets.header import Header
from workbench.tui.widgets.machine import Machine
from workbench.tui.widgets.pages import FilesPage, NotesPage
from workbench.tui.widgets.rows import Rows
from workbench.tui.widgets.scores import ScoreTable
from workbench.tui.widgets.scoring_panel import ScoringPanel
from workbench.tui.widgets.small import TooSmall
from workbench.tui.widgets.tabs import Keys, Tabs

pytestmark = pytest.mark.failures

HOSTILE = (
    "[/]", "[bold", "[bold]x[/bold]", "[@click=app.quit]x[/]", "[link=http://evil.example]x[/link]", "\\[", "]]", "[[",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x07", "\x9b31m", "\r\n\r", "a\rb", "\x00\x07\x08\x7f",
    "\ud800", "x\udfffy", "\ufffe\uffff", "x" * 10_000, "漢字" * 700, "🏳️\u200d🌈👩\u200d👩\u200d👧", "e\u0301" * 50, "\u0301\u0301",
    "שלום [x] עולם", "\u202eevil\u202c", "\u2066a\u2069", "\t\ttabs", "\u2028\u2029", "\u200b\u200d\ufeff", "$primary", "{x!r}%s",
    "# not a heading", "| a | b |\n| - | - |\n| c |", "```", "<script>", "`", "**", "> ", "- \n  - \n1. ", "", " ", "\n\n\n",
)  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
)
SIZES = ((80, 24), (120, 40), (200, 60), (24, 8), (7, 3))


def hostile_story(text: str, mode_text: str) -> Story:
    """Return a session in which everything that comes from outside is `text`."""
    question = SurveyQuestion("key", text, (text, mode_text))
    environment = spec(
        slug=text,
        title=text,
        summary=text,
        raw_label=text,
        deliverables=(text, mode_text),
        survey=(question, SurveyQuestion("k", text)),
    )
    story = Story(ScriptedSource())
    story.open(
        environment=environment, participant=text, session=text, profile=text, work_tree=text,
        isolation=IsolationFound(Isolation.NONE, (text, mode_text)), hardware=Hardware(text, text, 2, 1),
    )  # fmt: skip
    story.starting(message=text).begin().wait(5)
    story.score(1.5, text, message=text)
    story.score(None, text, status=ScoreStatus.INVALID, message=text)
    story.note(text, by=text)
    story.check(Problem(text, text, text))
    source = story.source
    source.happen(MessageSent(1, text), f"proctor {text}")
    for part in Part:
        source.happen(HealthChanged(part, Light.RED if part is Part.DISK else Light.AMBER, text))
    number = story.ask(text)
    story.progress(number, text, 0.4)
    return story


def hostile_view(text: str) -> View:
    story = hostile_story(text, "other")
    source = story.source
    source.happen(ClockPaused(PauseReason.BREAK, text), "participant")
    state = source.state
    assert state is not None
    gpu = Gpu(0, text, 50.0, 1, 2, processes=(GpuProcess(1, text, text, None),))
    lost = Gpu(1, text, problem=text)
    plain_sample = machine_sample(source.now().boottime, 0, story._random)
    sample = Sample(
        **{name: getattr(plain_sample, name) for name in plain_sample.__struct_fields__}
        | {"gpus": (gpu, lost)}
    )  # type: ignore[arg-type]
    return View(
        state=state, now=source.now(), link=Link(up=False, why=text, attempt=3), samples=(sample,), brief=text,
        changed=(ChangedFile(text, text, 3), ChangedFile(text, "added")),
    )  # fmt: skip


def every_drawing() -> list[Drawing]:
    return [Header(), Bands(), Tabs(("brief", "notes", "files"), clock=True), Countdown(), Machine(), ScoreChart(), ScoringPanel(),
            Keys(), TooSmall()]  # fmt: skip


def every_list() -> list[Rows]:
    return [ScoreTable(), BriefPage(), NotesPage(), FilesPage()]


def everything_drawn(view: View, width: int, height: int) -> Iterator[tuple[str, list[Line]]]:
    for drawing in every_drawing():
        yield type(drawing).__name__, drawing.draw(view, width, height)
    for rows in every_list():
        yield type(rows).__name__, [*rows.fixed(view, width), *rows.scrolling(view, width)]
    yield "ready", ready_lines(view, width, height)
    yield "health", health_lines(view)
    yield "submit", submit_lines(view)
    yield "closing", closing_lines(view)
    for row in view.state.scores:
        yield "details", details_lines(row, view.state)
    text = view.brief or ""
    changes = (
        {"path": text, "kind": text, "patch": text, "is_large": True, "new_digest": text, "old_size": 1},
    )
    yield "diff", diff_lines(Against(text, changes))
    yield "diff problem", diff_lines(Against(text, problem=text))


def harmless(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cs", "Cf", "Zl", "Zp", "Cn", "Co"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXT, size=st.sampled_from(SIZES))
def test_every_panel_draws_any_text_in_its_own_cells_and_without_controls(
    text: str, size: tuple[int, int]
) -> None:
    width, height = size
    view = hostile_view(text)
    for name, lines in everything_drawn(view, width, height):
        for drawn in block(lines, width, len(lines)):
            shown = text_of(drawn)
            assert cell_len(shown) == width, (name, shown)
            assert all(harmless(character) for character in shown), (name, shown)
        for drawn in lines:
            assert all(harmless(character) for character in text_of(drawn)), (name, drawn)


@settings(max_examples=300, deadline=None)
@given(text=TEXT, cells=st.integers(0, 90))
def test_fitting_and_wrapping_keep_to_their_cells(text: str, cells: int) -> None:
    assert cell_len(fit(one_line(text), cells)) == cells
    for one in lines_of(text):
        pieces = wrap(one, cells)
        assert all(cell_len(piece) <= max(cells, 2) for piece in pieces)
        if cells >= 2:
            assert "".join(pieces).replace(" ", "") == one.replace(" ", "")


@settings(max_examples=150, deadline=None)
@given(text=TEXT, width=st.integers(8, 120))
def test_any_text_is_set_as_a_brief_and_can_be_searched(text: str, width: int) -> None:
    page = page_of(text, width)
    for drawn in page.lines:
        assert all(harmless(character) for character in text_of(drawn)), drawn
        assert text_of(marked(drawn, text[:3].casefold())) == text_of(drawn)
    assert all(0 <= heading.line < len(page.lines) for heading in page.headings)


@pytest.mark.parametrize("text", ["[/]", "[bold", "[red]x[/red]", "$primary", "\\["])
def test_markup_is_shown_character_for_character(text: str) -> None:
    assert plain(text) == text
    assert one_line(text) == text


def test_escapes_are_shown_as_pictures_and_do_nothing() -> None:
    assert plain("\x1b[31mred") == "␛[31mred"
    assert plain("a\x07b") == "a␇b"


@pytest.mark.parametrize(
    "text", ["[/]", "[bold", "\x1b[31m[@click=app.quit]x", "\ud800[/]", "x[" * 5_000, "שלום[/]漢字e\u0301"]
)
async def test_the_whole_app_shows_it_on_every_page(text: str) -> None:
    story = hostile_story(text, "[/other]")
    source = story.source
    source.answers["brief"] = lambda: {"text": text, "sha256": ""}
    source.answers["changed"] = lambda: {"files": [{"path": text, "kind": text, "size": 1}]}
    source.answers["diff"] = lambda **_: {
        "changes": [{"path": text, "kind": "added", "patch": text}],
        "truncated": 0,
    }
    async with showing(story, rules=text) as pilot:
        app = pilot.app
        await until(pilot, lambda: app.view is not None and app.view.brief is not None)
        source.lose(text)
        for keys in (("f",), ("2",), ("3",), ("h", "escape"), ("a", "escape"), ("b", "slash", "x", "enter", "escape"),
                     ("question_mark", "escape"), ("1", "enter"), ("left", "right", "escape"), ("n", "escape"), ("S", "escape")):  # fmt: skip
            await pilot.press(*keys)
            await pilot.pause()
            assert screen_text(app)
        app.notify(text, title="x", markup=False)
        source.happen(Submitted(), "participant")
        await until(pilot, lambda: type(app.screen).__name__ == "FinishPage")
        await pilot.press("down", "tab", *"ok", "ctrl+s")
        source.happen(SessionClosed(1, 1, 1.5, 0.3, "0" * 64, text))
        await until(pilot, lambda: "closed and sealed" in screen_text(app))
