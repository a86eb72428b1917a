"""Dialogs on small terminals: how to close them is always in sight, and what is too high scrolls."""

from __future__ import annotations

import pytest

from sessions.record.events import HealthChanged, Light, MessageSent, Part
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, showing, until
from workbench.tui.screens.main import MainScreen


def unwell() -> Story:
    """Give every part a reason of several lines, more than any small terminal shows at once."""
    story = Story().afternoon()
    for part in Part:
        story.source.happen(
            HealthChanged(part, Light.AMBER, f"{part.value} has trouble " + "and trouble " * 9)
        )
    return story


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (120, 40)])
async def test_the_health_dialog_scrolls_and_keeps_its_line_of_keys(size: tuple[int, int]) -> None:
    async with showing(unwell(), size=size) as pilot:
        await pilot.press("h")
        await until(pilot, lambda: "esc close    ↑ ↓ scroll" in screen_text(pilot.app))
        assert "Is everything well?" in screen_text(pilot.app)
        assert "isolation " not in screen_text(pilot.app)
        await pilot.press(*["pagedown"] * 6)
        await until(pilot, lambda: "isolation " in screen_text(pilot.app), "its last lines can be reached")
        assert "esc close    ↑ ↓ scroll" in screen_text(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))


async def test_a_dialog_that_is_whole_offers_no_scrolling_until_the_terminal_shrinks() -> None:
    async with showing(Story().afternoon(), size=(120, 40)) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: "esc close" in screen_text(pilot.app))
        assert "↑ ↓ scroll" not in screen_text(pilot.app)
        await pilot.resize_terminal(80, 18)
        await until(pilot, lambda: "esc close    ↑ ↓ scroll" in screen_text(pilot.app))


async def test_a_long_message_can_be_read_to_its_end_and_acknowledged() -> None:
    story = Story().afternoon()
    story.source.happen(MessageSent(1, "\n".join(f"line {at}" for at in range(40))), "proctor ann")
    async with showing(story, size=(80, 24)) as pilot:
        await pilot.press("a")
        await until(pilot, lambda: "enter acknowledge    esc later" in screen_text(pilot.app))
        await pilot.press(*["down"] * 40)
        await until(pilot, lambda: "line 39" in screen_text(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: ("acknowledge", {"number": 1}) in story.source.requests)
