"""What tests of the screens share: an app on a scripted source, and waiting for conditions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from tests.workbench.tui.story import RULES, Story
from workbench.tui.app import WorkbenchApp
from workbench.tui.scripted import ScriptedSource

SIZES = ((80, 24), (120, 40), (200, 60))


def make_app(story: Story | ScriptedSource, **how: Any) -> WorkbenchApp:
    source = story.source if isinstance(story, Story) else story
    how.setdefault("rules", RULES)
    how.setdefault("ascii_only", False)
    return WorkbenchApp(source, **how)


async def until(
    pilot: Pilot[Any], condition: Callable[[], bool], what: str = "", seconds: float = 10.0
) -> None:
    """Let the app work until `condition` holds."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await pilot.pause()
    except TimeoutError:
        raise AssertionError(
            f"not within {seconds} s: {what or condition}\n{screen_text(pilot.app)}"
        ) from None


def screen_text(app: Any) -> str:
    """Return what is on the screen, trailing blanks cut."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@asynccontextmanager
async def showing(
    story: Story | ScriptedSource, *, size: tuple[int, int] = (120, 40), **how: Any
) -> AsyncIterator[Pilot[int]]:
    """Run an app over a story until it has shown what the story says."""
    app = make_app(story, **how)
    source = app.source
    assert isinstance(source, ScriptedSource)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.view is not None and source.state is not None
                    and app.view.state.last_seq == source.state.last_seq, "the story is told")  # fmt: skip
        await until(pilot, lambda: getattr(app.screen, "is_mounted", False), "the page is there")
        await pilot.pause()
        yield pilot
