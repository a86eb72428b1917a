"""Pages and panels on small terminals: nothing that matters is cut, and the session is named."""

from __future__ import annotations

import pytest

from environments.contract import ScoreStatus
from environments.registry import Found, all_found
from sessions.record.events import (
    ClockPaused,
    ConsentGiven,
    HealthChanged,
    Light,
    Part,
    PauseReason,
    SessionPolicy,
    SnapshotReason,
    SnapshotTaken,
    Submitted,
    TimeCredited,
)
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, showing, until
from workbench.ink import words
from workbench.ink.lines import Tone, cells, folded, text_of
from workbench.tui.screens.submitting import FinishPage, SubmitDialog, scored_already
from workbench.tui.view import View
from workbench.tui.widgets.countdown import countdown
from workbench.tui.widgets.header import header
from workbench.tui.widgets.scoring_panel import scoring_lines
from workbench.tui.widgets.tabs import key_line, keys_for

MESSAGE = (
    "model.py line 14: Weights must come from relu layers only, and this one divides. "
    "Take aten.div out of the forward pass or replace it by a product."
)


async def test_a_scores_message_is_whole_on_eighty_columns() -> None:
    story = Story().afternoon()
    story.record(6, None, ScoreStatus.INVALID, MESSAGE)
    async with showing(story, size=(80, 24)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "MESSAGE" in screen_text(pilot.app))
        beside_the_scrollbar = "\n".join(one[:76] for one in screen_text(pilot.app).split("\n"))
        assert MESSAGE in " ".join(beside_the_scrollbar.split())


async def test_long_lines_of_a_diff_go_on_below() -> None:
    story = Story().afternoon()
    patch = "+" + "x" * 100 + "END"
    story.source.answers["diff"] = lambda **_: {
        "changes": [{"kind": "modified", "path": "model.py", "patch": patch}]
    }
    async with showing(story, size=(80, 40)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "END" in screen_text(pilot.app))


def test_a_folded_line_keeps_every_character_and_tone() -> None:
    drawn = (("ab漢", Tone.TEXT), ("cdef", Tone.BAD))
    lines = folded(drawn, 3)
    assert [text_of(one) for one in lines] == ["ab", "漢c", "def"]
    assert all(cells(one) <= 3 for one in lines)
    assert lines[2] == (("def", Tone.BAD),)


@pytest.mark.parametrize("width", [62, 70, 80, 100, 120, 200])
def test_the_header_names_the_session_at_every_width(width: int) -> None:
    story = Story().afternoon()
    story.source.happen(HealthChanged(Part.RECORDER, Light.RED, "no space left"))
    assert story.source.state is not None
    drawn = header(View(story.source.state, story.source.now()), width)
    assert "s-7f3a19" in text_of(drawn)
    assert "■ recording" in text_of(drawn)
    assert cells(drawn) == width


async def test_the_submit_dialog_names_the_session_it_ends() -> None:
    async with showing(Story().afternoon(), size=(80, 24)) as pilot:
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, SubmitDialog))
        text = screen_text(pilot.app)
        assert "session       s-7f3a19  restricted_mlm · jo" in text
        assert "type submit to finish" in text


def submitted(*, tree: int | None) -> Story:
    """Submit with the tree of an earlier snapshot, or with another one."""
    story = Story().open().starting().begin().wait(5)
    story.score(1.5, "first").wait(5)
    story.score(1.6, "second").wait(1)
    state = story.source.state
    assert state is not None
    same = "f" * 40 if tree is None else state.snapshots[tree].tree
    story.source.happen(Submitted(), "participant")
    story.source.happen(
        SnapshotTaken(9, SnapshotReason.SUBMIT, "complete", "c" * 40, same, 12, 80_000, 1, 0.1)
    )
    return story


async def test_the_end_says_that_the_final_state_was_scored_earlier() -> None:
    async with showing(submitted(tree=1), size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, FinishPage))
        assert "final state   is that of #1, scored already" in screen_text(pilot.app)
        assert "2 calls" in screen_text(pilot.app)


async def test_the_end_says_when_nothing_was_changed_from_the_start() -> None:
    async with showing(submitted(tree=0), size=(80, 24)) as pilot:
        await until(pilot, lambda: "is that of the starting score, scored already" in screen_text(pilot.app))


def test_a_final_state_that_is_new_is_not_called_scored() -> None:
    state = submitted(tree=None).source.state
    assert state is not None
    assert scored_already(state) is None


@pytest.mark.parametrize("budget_minutes", [90, 480, 59, 1_250])
@pytest.mark.parametrize("width", [27, 30, 31, 36, 40, 42])
def test_times_under_the_countdown_are_whole_or_not_there(budget_minutes: int, width: int) -> None:
    policy = SessionPolicy(budget_ms=budget_minutes * 60_000)
    story = Story().open(policy=policy).starting().begin().wait(min(50, budget_minutes - 5))
    story.source.happen(ClockPaused(PauseReason.BREAK, "tea"), "participant")
    story.wait(12)
    assert story.source.state is not None
    lines = countdown(View(story.source.state, story.source.now()), width, 7)
    used, bar = (text_of(one) for one in lines[-2:])
    assert used.startswith("used 0:50:00")
    assert ("paused 0:12:00" in used) == (width >= 28)
    assert words.spoken_time(policy.budget_ms) in used + bar
    assert "…" not in used + bar
    assert "━" in bar
    assert all(cells(one) <= width for one in (lines[0], *lines[-2:]))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_few_minutes_of_use_are_told_from_a_few_hours(size: tuple[int, int]) -> None:
    story = Story().open().starting().begin()
    story.source.clock.advance(231)
    async with showing(story, size=size) as pilot:
        assert "used 0:03:51" in screen_text(pilot.app)


@pytest.mark.parametrize("width", [30, 40])
def test_a_credit_is_named_with_its_seconds(width: int) -> None:
    story = Story().open().starting().begin().wait(30)
    story.source.happen(TimeCredited(90_000, "power cut"), "proctor ann")
    assert story.source.state is not None
    lines = countdown(View(story.source.state, story.source.now()), width, 7)
    assert "credit +0:01:30" in "\n".join(text_of(one) for one in lines)


async def test_the_ready_page_is_whole_on_eighty_columns() -> None:
    async with showing(Story().open(), size=(80, 24)) as pilot:
        text = screen_text(pilot.app)
        assert "…" not in text.replace("… starting score", "").replace("… rules", "")
        assert "you have agreed to the rules." in " ".join(text.split())


@pytest.mark.parametrize("found", all_found(), ids=lambda found: found.spec.slug)
async def test_the_counting_rule_of_every_environment_is_whole_on_eighty_columns(found: Found) -> None:
    spec = found.spec
    story = Story().open(environment=spec, work_tree="/home/jo/" + "deep/" * 16).starting()
    story.source.happen(ConsentGiven("0" * 64), "participant")
    async with showing(story, size=(80, 24)) as pilot:
        text = screen_text(pilot.app)
        assert f"{words.better(spec.direction)}; {spec.counting.value} valid score counts" in text
        assert "Press Enter to start the clock" in text
        assert ("/home/jo/" + "deep/" * 16) in "".join(text.split())
        assert "…" not in text


async def test_the_key_that_starts_the_clock_is_shown_where_there_is_no_room_for_all() -> None:
    story = Story().open().starting()
    story.source.happen(ConsentGiven("0" * 64), "participant")
    async with showing(story, size=(60, 16)) as pilot:
        assert "Press Enter to start the clock" in screen_text(pilot.app)


async def test_a_starting_solution_that_cannot_be_scored_is_what_enter_waits_for() -> None:
    story = Story().open().starting(None, ScoreStatus.CRASHED, "the scorer fell over")
    async with showing(story) as pilot:
        assert "once the starting solution can be scored" in screen_text(pilot.app)


@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (60, "s c p ? S q"),
        (80, "s c n p t ? S q"),
        (100, "s c n p t b ? f S q"),
        (120, "s c n p t b ? f enter S q"),
    ],
)
def test_the_footer_gives_up_the_less_important_keys_first(width: int, kept: str) -> None:
    state = Story().afternoon().source.state
    assert state is not None
    drawn = key_line(keys_for(View(state, Story().source.now())), width)
    assert " ".join(text for text, tone in drawn if tone is Tone.KEY) == kept
    assert cells(drawn) == width
    assert "…" not in text_of(drawn)


@pytest.mark.parametrize(
    ("raw", "said"), [(1.8142, "norm 0.00  change 0  "), (1.5, "norm 0.46  change −0.3142  ")]
)
def test_the_change_of_the_last_score_has_a_name_or_is_not_there(raw: float, said: str) -> None:
    story = Story().open().starting().begin().wait(5)
    story.score(raw, "first").wait(5)
    state = story.source.state
    assert state is not None
    view = View(state, story.source.now())
    assert f"last #1  {raw:.4f}  {said}" in text_of(scoring_lines(view, 78, 3)[1]) + "  "
    narrow = text_of(scoring_lines(view, 30, 3)[1])
    assert "change" not in narrow
    assert words.change(state.scores[-1].change) not in narrow.split()
