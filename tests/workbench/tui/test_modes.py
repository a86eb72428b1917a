"""Whoever only watches or replays is offered nothing that is refused there."""

from __future__ import annotations

import pytest

from sessions.record.events import ScoreRequested
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, showing, until
from workbench.tui.commands import commands
from workbench.tui.screens.prompts import KEYS, KeysPage, keys_of
from workbench.tui.scripted import ScriptedSource
from workbench.tui.source import Mode

LOOKING = (Mode.WATCH, Mode.REPLAY)
SENDING = {"s  c", "n", "p  r", "t", "S", "x", "f"}


async def test_the_keys_page_of_a_watcher_lists_only_what_works() -> None:
    story = Story(ScriptedSource(mode=Mode.WATCH)).afternoon()
    async with showing(story) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, KeysPage))
        text = screen_text(pilot.app)
        assert "brief, with contents and search" in text
        for gone in (
            "score the work folder",
            "write a note",
            "pause, resume",
            "recorded shell",
            "submit",
            "acknowledge",
        ):
            assert gone not in text


async def test_every_key_is_listed_on_the_smallest_usual_terminal() -> None:
    async with showing(Story().afternoon(), size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, KeysPage))
        await until(pilot, lambda: "esc close" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        assert [what for _, what in KEYS if what not in text] == []


@pytest.mark.parametrize("mode", LOOKING)
def test_no_key_that_sends_is_listed_for_those_who_look(mode: Mode) -> None:
    assert not SENDING & {key for key, _ in keys_of(mode)}
    assert keys_of(Mode.LIVE) == list(KEYS)


@pytest.mark.parametrize("mode", LOOKING)
async def test_an_early_session_that_is_looked_at_offers_no_score_note_or_check(mode: Mode) -> None:
    story = Story(ScriptedSource(mode=mode)).open().starting().begin()
    async with showing(story) as pilot:
        text = screen_text(pilot.app)
        assert "idle" in text
        assert "not checked yet" in text
        assert "s scores" not in text
        assert "c checks" not in text
        await pilot.press("3")
        await until(pilot, lambda: "no notes yet" in screen_text(pilot.app))
        assert "n writes" not in screen_text(pilot.app)


@pytest.mark.parametrize("mode", list(Mode))
async def test_only_a_participant_is_told_to_press_s_for_the_first_score(mode: Mode) -> None:
    story = Story(ScriptedSource(mode=mode)).open()
    async with showing(story) as pilot:
        table = pilot.app.screen_stack[0].query_one("#scores")
        await until(pilot, lambda: "no score yet" in table.text())
        assert ("press s" in table.text()) is (mode is Mode.LIVE)
        story.source.happen(ScoreRequested(0))
        await until(pilot, lambda: "no score yet" not in table.text())


@pytest.mark.parametrize("mode", LOOKING)
async def test_the_palette_offers_only_commands_that_look(mode: Mode) -> None:
    async with showing(Story(ScriptedSource(mode=mode)).afternoon()) as pilot:
        offered = {command.title for command in commands(pilot.app)}
    assert {"Brief", "Health", "Keys", "Detach"} <= offered
    assert not offered & {"Score", "Check", "Note", "Pause", "Resume", "Shell", "Submit", "Cancel score"}


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_watcher_is_not_told_to_look_for_changed_files(mode: Mode) -> None:
    async with showing(Story(ScriptedSource(mode=mode)).afternoon(), size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "since snapshot" in screen_text(pilot.app))
        assert ("press f" in screen_text(pilot.app)) is (mode is not Mode.WATCH)
