"""The app as a person uses it: pages by phase, requests out, facts in."""

from __future__ import annotations

from hashlib import sha256

import pytest
from textual.events import Paste
from textual.widgets import Input, TextArea

from environments.contract import ScoreStatus
from sessions.clients.protocol import Refusal
from sessions.record.events import (
    Breaks,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    ConsentGiven,
    DeadlineReached,
    MessageAcknowledged,
    MessageSent,
    PauseReason,
    SessionClosed,
    SessionPolicy,
    Submitted,
    SurveyAnswered,
    WarningGiven,
)
from tests.workbench.tui.story import RULES, Story, spec
from tests.workbench.tui.support import screen_text, showing, until
from workbench.tui.screens.main import MainScreen
from workbench.tui.screens.prompts import NotePrompt, PausePrompt, ScorePrompt
from workbench.tui.screens.ready import ReadyPage, RulesPage
from workbench.tui.screens.submitting import FinishPage, SubmitDialog
from workbench.tui.scripted import ScriptedSource
from workbench.tui.source import Mode
from workbench.tui.theme import NAMES


async def test_before_the_clock_runs_the_ready_page_says_what_is_missing() -> None:
    async with showing(Story().open()) as pilot:
        assert isinstance(pilot.app.screen, ReadyPage)
        text = screen_text(pilot.app)
        assert "Restricted-architecture MLM" in text
        assert "being taken" in text
        said = " ".join(text.split())
        assert (
            "Enter starts the clock once the starting score is taken and you have agreed to the rules."
            in said
        )


async def test_agreeing_to_the_rules_sends_the_digest_of_the_text_that_was_shown() -> None:
    story = Story().open().starting()
    async with showing(story) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RulesPage))
        assert "Work alone" in screen_text(pilot.app)
        await pilot.press("y")
        await until(pilot, lambda: bool(story.source.requests))
        assert story.source.requests == [("consent", {"rules_sha256": sha256(RULES.encode()).hexdigest()})]


async def test_leaving_the_rules_page_agrees_to_nothing() -> None:
    story = Story().open().starting()
    async with showing(story) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RulesPage))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadyPage))
        assert story.source.requests == []


async def test_enter_starts_the_clock_only_when_all_is_there() -> None:
    story = Story().open()
    story.source.happen(ConsentGiven("0" * 64), "participant")
    async with showing(story) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert story.source.requests == []
        story.starting()
        await until(pilot, lambda: "Press Enter to start the clock" in screen_text(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: ("start_clock", {}) in story.source.requests)
        story.source.happen(ClockStarted(), "participant")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))


async def test_a_starting_solution_that_cannot_be_scored_is_said_and_starts_nothing() -> None:
    story = Story().open().starting(None, ScoreStatus.CRASHED, "the scorer fell over")
    async with showing(story) as pilot:
        assert "crashed  the scorer fell over" in screen_text(pilot.app)
        await pilot.press("enter")
        assert ("start_clock", {}) not in story.source.requests


async def test_the_brief_is_asked_for_once_the_clock_runs_and_shown() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await until(pilot, lambda: "Design and train a masked language" in screen_text(pilot.app))
        assert [method for method, _ in story.source.requests].count("brief") == 1


async def test_score_asks_for_a_note_and_does_not_wait() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, ScorePrompt))
        await pilot.press(*"wider", "enter")
        await until(pilot, lambda: ("score", {"note": "wider", "wait": False}) in story.source.requests)


async def test_escape_leaves_the_score_prompt_without_scoring() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("s", "x", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "score" not in [method for method, _ in story.source.requests]


async def test_a_refusal_is_shown_in_the_hosts_own_words() -> None:
    story = Story().afternoon()

    def refuse(**_: object) -> dict[str, object]:
        raise Refusal("cannot score: [the deadline] has passed")

    story.source.answers["score"] = refuse
    async with showing(story) as pilot:
        await pilot.press("s", "enter")
        await until(pilot, lambda: "cannot score: [the deadline] has passed" in screen_text(pilot.app))


async def test_a_note_left_with_escape_is_there_when_the_editor_opens_again() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NotePrompt))
        await pilot.press(*"half", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NotePrompt))
        assert pilot.app.screen.query_one(TextArea).text == "half"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: ("note", {"text": "half"}) in story.source.requests)


async def test_a_deadline_while_a_note_is_written_does_not_take_the_note_away() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NotePrompt))
        await pilot.press(*"still here")
        story.source.happen(DeadlineReached())
        await until(
            pilot, lambda: pilot.app.view is not None and pilot.app.view.state.deadline_at is not None
        )
        await pilot.pause()
        assert isinstance(pilot.app.screen, NotePrompt)
        assert pilot.app.screen.words == "still here"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: ("note", {"text": "still here"}) in story.source.requests)
        await until(
            pilot, lambda: isinstance(pilot.app.screen, FinishPage), "the finish page comes afterwards"
        )


async def test_pause_sends_a_break_and_the_screen_says_that_the_clock_stands() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, PausePrompt))
        await pilot.press(*"tea", "enter")
        await until(pilot, lambda: ("pause", {"reason": "break", "note": "tea"}) in story.source.requests)
        story.source.happen(ClockPaused(PauseReason.BREAK, "tea"), "participant")
        await until(pilot, lambda: "PAUSED  break" in screen_text(pilot.app))
        assert "CLOCK STOPPED" in screen_text(pilot.app)
        await pilot.press("r")
        await until(pilot, lambda: ("resume", {}) in story.source.requests)
        story.source.happen(ClockResumed(), "participant")
        await until(pilot, lambda: "PAUSED" not in screen_text(pilot.app))


async def test_a_session_without_breaks_says_so_instead_of_asking() -> None:
    policy = SessionPolicy(budget_ms=3_600_000, breaks=Breaks.NONE)
    story = Story().open(policy=policy).starting().begin()
    async with showing(story) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: "This session has no breaks" in screen_text(pilot.app))
        await pilot.press("enter", "escape")
        assert "pause" not in [method for method, _ in story.source.requests]


async def test_a_pause_by_a_proctor_offers_no_resume() -> None:
    story = Story().afternoon()
    story.source.happen(ClockPaused(PauseReason.PROCTOR, "network down"), "proctor ann")
    async with showing(story) as pilot:
        text = screen_text(pilot.app)
        assert "stopped by the proctor" in text
        assert "[r] resume" not in text


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_hold_for_any_reason_says_that_only_its_proctor_can_resume(size: tuple[int, int]) -> None:
    story = Story().afternoon()
    story.source.happen(ClockPaused(PauseReason.INFRASTRUCTURE, "the scorer's disk is full"), "proctor ann")
    async with showing(story, size=size) as pilot:
        text = screen_text(pilot.app)
        assert "infrastructure trouble · only proctor ann can resume" in text
        assert "r resume" not in text
        assert "[r] resume" not in text


async def test_a_pause_while_a_score_is_computed_says_that_it_ends_by_itself() -> None:
    story = Story().afternoon()
    story.source.happen(ClockPaused(PauseReason.SCORING))
    async with showing(story, size=(80, 24)) as pilot:
        text = screen_text(pilot.app)
        assert "a score is being computed · goes on by itself when the score is in" in text
        assert "r resume" not in text
        assert "[r] resume" not in text


async def test_a_pause_that_nobody_asked_for_is_the_participants_to_end() -> None:
    story = Story().afternoon()
    story.source.happen(ClockPaused(PauseReason.CRASH))
    async with showing(story, size=(80, 24)) as pilot:
        assert "[r] resume" in screen_text(pilot.app)


async def test_submit_needs_the_word_itself() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, SubmitDialog))
        await until(pilot, lambda: "3 files not yet scored: model.py" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        assert "6:40:" in text
        assert "1.3021" in text
        await pilot.press("enter")
        await until(pilot, lambda: "type the word submit" in pilot.app.screen.query_one(Input).placeholder)
        assert "submit" not in [method for method, _ in story.source.requests]
        await pilot.press(*"submit", "enter")
        await until(pilot, lambda: ("submit", {}) in story.source.requests)


async def test_after_submission_the_survey_is_asked_and_the_closing_figures_shown() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        story.source.happen(Submitted(), "participant")
        await until(pilot, lambda: isinstance(pilot.app.screen, FinishPage))
        await until(pilot, lambda: "How hard was it?" in screen_text(pilot.app))
        assert "[very] hard" in screen_text(pilot.app)
        assert "● " not in screen_text(pilot.app), "nothing is chosen for anybody"
        await pilot.press("down", "space", "tab", *"data", "ctrl+s")
        await until(pilot, lambda: any(method == "survey" for method, _ in story.source.requests))
        answers = next(sent["answers"] for method, sent in story.source.requests if method == "survey")
        assert answers == {"difficulty": "about right", "stuck": "data", "experience": ""}
        story.source.happen(SurveyAnswered(answers), "participant")
        story.source.happen(SessionClosed(4_000_000, 5, 1.3021, 0.75, "0" * 64, "survey answered"))
        await until(pilot, lambda: "closed and sealed" in screen_text(pilot.app))
        assert "How hard was it?" not in screen_text(pilot.app)


async def test_an_environment_without_questions_still_lets_the_person_close_the_session() -> None:
    story = Story().open(environment=spec(survey=())).starting().begin()
    async with showing(story) as pilot:
        story.source.happen(Submitted(), "participant")
        await until(pilot, lambda: "Anything the people who run this session" in screen_text(pilot.app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: ("survey", {"answers": {"remarks": ""}}) in story.source.requests)


async def test_a_proctors_message_stays_until_it_is_acknowledged() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        story.source.happen(MessageSent(1, "The power goes at [15:00]."), "proctor ann")
        await until(
            pilot, lambda: "MESSAGE from proctor ann  The power goes at [15:00]." in screen_text(pilot.app)
        )
        await pilot.press("a")
        await pilot.press("enter")
        await until(pilot, lambda: ("acknowledge", {"number": 1}) in story.source.requests)
        story.source.happen(MessageAcknowledged(1), "participant")
        await until(pilot, lambda: "MESSAGE" not in screen_text(pilot.app))


async def test_warnings_ring_once_each_and_only_while_they_are_news() -> None:
    story = Story().afternoon()
    story.source.happen(WarningGiven(60))
    rung: list[int] = []
    async with showing(story) as pilot:
        pilot.app.ring = lambda: rung.append(1)  # type: ignore[attr-defined]
        story.source.happen(WarningGiven(15))
        await until(pilot, lambda: "15 minutes left" in screen_text(pilot.app))
        assert rung == [1]


async def test_cancel_names_the_scoring_that_runs() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("x")
        await until(pilot, lambda: ("cancel_score", {"number": 6}) in story.source.requests)


async def test_details_show_message_and_diffs_to_the_score_before_and_the_best() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "Score #4" in screen_text(pilot.app))
        await until(pilot, lambda: "SINCE THE BEST · #5 → #4" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        assert "SINCE THE SCORE BEFORE · #3 → #4" in text
        assert "+        gate = torch.relu(self.gate(hidden))" in text
        await pilot.press("y")
        row = story.source.state.scores[4] if story.source.state else None
        assert row is not None
        assert pilot.app.clipboard == row.commit


async def test_files_asks_for_changes_and_lists_them() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("f")
        await until(pilot, lambda: "3 files changed since snapshot" in screen_text(pilot.app))
        assert "runs/wide/model.safetensors" in screen_text(pilot.app)


async def test_the_brief_can_be_searched_and_its_headings_visited() -> None:
    async with showing(Story().afternoon(), size=(120, 24)) as pilot:
        await until(pilot, lambda: pilot.app.view is not None and pilot.app.view.brief is not None)
        await pilot.press("b")
        await until(
            pilot,
            lambda: "CONTENTS" in screen_text(pilot.app) and "Allowed operators" in screen_text(pilot.app),
        )
        await pilot.press("slash", *"refused operator", "enter")
        await until(pilot, lambda: "A refused operator is named" in screen_text(pilot.app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))


async def test_leaving_only_detaches() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("q")
    assert pilot.app.return_value == 0
    assert story.source.closed
    assert {method for method, _ in story.source.requests} <= {"brief"}


async def test_a_storm_of_sizes_ends_with_the_last_one_drawn_right() -> None:
    async with showing(Story().afternoon().machine(seconds=30)) as pilot:
        for width, height in [(80, 24), (30, 8), (200, 60), (61, 17), (1, 1), (119, 29), (100, 30)] * 3:
            await pilot.resize_terminal(width, height)
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: "terminal too small" in screen_text(pilot.app))
        await pilot.resize_terminal(120, 40)
        await until(
            pilot, lambda: "TIME LEFT" in screen_text(pilot.app) and "1.3021" in screen_text(pilot.app)
        )
        assert max(len(one) for one in screen_text(pilot.app).split("\n")) <= 120


async def test_pasted_text_on_the_main_screen_presses_no_keys() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        pilot.app.post_message(Paste("s\nS\nsubmit\nq"))
        await pilot.pause()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        assert {method for method, _ in story.source.requests} <= {"brief"}


async def test_pasted_text_goes_into_a_note_as_it_is() -> None:
    story = Story().afternoon()
    async with showing(story) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NotePrompt))
        pilot.app.post_message(Paste("[bold]two\nlines"))
        await until(pilot, lambda: pilot.app.screen.words == "[bold]two\nlines")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: ("note", {"text": "[bold]two\nlines"}) in story.source.requests)


@pytest.mark.parametrize("theme", NAMES)
async def test_every_theme_can_be_chosen_while_it_runs(theme: str) -> None:
    async with showing(Story().afternoon()) as pilot:
        pilot.app.set_theme(theme)
        await pilot.pause()
        assert pilot.app.theme == theme
        assert "TIME LEFT" in screen_text(pilot.app)
        await pilot.press("h")
        await until(pilot, lambda: "Is everything well?" in screen_text(pilot.app))


async def test_changing_the_theme_repaints_what_already_stood_there() -> None:
    async with showing(Story().afternoon()) as pilot:

        def colours() -> set[str]:
            strips = pilot.app.screen._compositor.render_strips()
            return {
                segment.style.color.name
                for strip in strips
                for segment in strip
                if segment.style and segment.style.color
            }

        dark = colours()
        pilot.app.set_theme("light")
        await until(pilot, lambda: not colours() & dark, "every colour is another")


async def test_a_screen_that_watches_sends_nothing() -> None:
    story = Story(ScriptedSource(mode=Mode.WATCH)).afternoon()
    async with showing(story) as pilot:
        await pilot.press("s", "c", "n", "p", "r", "S", "x", "t")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        assert {method for method, _ in story.source.requests} <= {"brief"}
        assert "WATCH" in screen_text(pilot.app)


async def test_a_replay_may_jump_backwards_even_to_before_the_clock() -> None:
    early = Story().open().starting()
    assert early.source.state is not None
    story = Story(ScriptedSource(mode=Mode.REPLAY)).afternoon()
    late = story.source.state
    assert late is not None
    async with showing(story) as pilot:
        assert "1.3021" in screen_text(pilot.app)
        story.source.jump(early.source.state)
        await until(pilot, lambda: "1.3021" not in screen_text(pilot.app))
        assert "clock not started" in screen_text(pilot.app)
        assert isinstance(pilot.app.screen, MainScreen)
        story.source.jump(late)
        await until(pilot, lambda: "1.3021" in screen_text(pilot.app))
