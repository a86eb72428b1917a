"""The screens as plain text at each size; `REBENCH_GOLDEN=write` writes them anew after a look at the pictures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from environments.contract import ScoreStatus
from sessions.record.events import (
    ClockPaused,
    ConsentGiven,
    HealthChanged,
    Light,
    MessageSent,
    Part,
    PauseReason,
    Submitted,
)
from tests.workbench.tui.story import Story, spec
from tests.workbench.tui.support import SIZES, screen_text, showing, until

GOLDEN = Path(__file__).parent / "golden"


def afternoon() -> Story:
    return Story().afternoon().machine()


def two_gpus() -> Story:
    return Story().afternoon().machine(gpus=2)


def ready() -> Story:
    story = Story().open().starting()
    story.source.happen(ConsentGiven("0" * 64), "participant")
    return story


def paused() -> Story:
    story = afternoon()
    story.source.happen(ClockPaused(PauseReason.BREAK, "tea"), "participant")
    story.source.clock.advance(95)
    return story


def in_trouble() -> Story:
    story = afternoon()
    source = story.source
    source.happen(HealthChanged(Part.DISK, Light.RED, "12 kB free where the record is kept"))
    source.happen(HealthChanged(Part.RECORDER, Light.RED, "recording stopped: no space left"))
    source.happen(HealthChanged(Part.SCORER, Light.AMBER, "the scorer crashed and was started again"))
    source.happen(MessageSent(1, "Take a break, your time is safe."), "proctor ann")
    source.lose("no host answers", 3)
    return story


def hidden() -> Story:
    story = Story().open(environment=spec(scores_hidden=True), anchors=None).starting().begin().wait(20)
    story.score(0.31, "first try").wait(30)
    story.score(None, "x", status=ScoreStatus.INVALID, message="answer.json: n_embd is not a multiple of 8")
    return story


def finished() -> Story:
    story = Story().afternoon()
    story.record(6, 1.2950)
    story.source.happen(Submitted(), "participant")
    story.progress(story.ask("final"), "evaluating", 0.6)
    return story


STORIES = {
    "afternoon": afternoon,
    "two_gpus": two_gpus,
    "ready": ready,
    "paused": paused,
    "in_trouble": in_trouble,
    "hidden": hidden,
    "finished": finished,
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", STORIES)
async def test_the_screen_is_as_it_was_designed(name: str, size: tuple[int, int]) -> None:
    async with showing(STORIES[name](), size=size) as pilot:
        live = name != "ready"
        await until(pilot, lambda: not live or pilot.app.view.brief is not None or name == "in_trouble")
        await pilot.pause()
        await pilot.pause()
        found = screen_text(pilot.app)
    path = GOLDEN / f"{name}_{size[0]}x{size[1]}.txt"
    if os.environ.get("REBENCH_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(found + "\n")
    assert found + "\n" == path.read_text()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_without_utf8_the_same_screen_is_ascii_cell_for_cell(size: tuple[int, int]) -> None:
    async with showing(afternoon(), size=size, ascii_only=True) as pilot:
        await until(pilot, lambda: pilot.app.view.brief is not None)
        found = screen_text(pilot.app)
    assert found.isascii()
    assert "TIME LEFT" in found
    assert "1.3021" in found
    assert "5 *" in found
