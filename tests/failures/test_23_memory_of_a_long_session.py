"""piccolomo/plotext 216: chart memory grew to 1 GB in 20 h. Eight hours with 300 scores here: flat."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from tests.workbench.tui.story import Story, machine_sample
from tests.workbench.tui.support import showing, until
from workbench.tui.plot import Scale, Zoom, draw
from workbench.tui.view import View
from workbench.tui.widgets.chart import chart_of

pytestmark = [pytest.mark.failures, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(600)]
SCORES = 300
STEP = 10
"""Seconds between samples of the simulated session."""


def used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_eight_hours_with_three_hundred_scores_leave_memory_flat() -> None:
    story = Story().open().starting().begin()
    source = story.source
    chance = random.Random(1)
    steps_a_score = 8 * 3600 // STEP // SCORES - 1
    async with showing(story) as pilot:
        app = pilot.app
        after: list[int] = []
        tracemalloc.start()
        raw = 1.8
        for number in range(SCORES):
            for _ in range(steps_a_score):
                source.clock.advance(STEP)
                source.sample(machine_sample(source.now().boottime, 1, chance))
            raw = max(1.0, raw - chance.uniform(0, 0.004))
            story.score(raw + chance.uniform(0, 0.2), "a note of ordinary length")
            await pilot.pause()
            if number in {SCORES // 3, 2 * SCORES // 3, SCORES - 1}:
                after.append(used())
        await until(pilot, lambda: len(app.view.state.scores) == SCORES + 1)
        # What a score itself is remembered by: its row, its snapshot, its texts.
        a_score = (after[2] - after[0]) / (2 * SCORES / 3)
        assert a_score < 16_000, f"{a_score:.0f} bytes a score"

        # The same span again without a score: once the caches have their fill, nothing more is kept.
        for hours in (3, 6):
            before = used()
            for _ in range(hours * 20):
                for _ in range(18):
                    source.clock.advance(STEP)
                    source.sample(machine_sample(source.now().boottime, 1, chance))
                await pilot.pause()
                app.screen.tick(app.view)
        grown = used() - before
        tracemalloc.stop()
        assert grown < 200_000, f"{grown} bytes in six idle hours"


def test_drawing_the_chart_two_thousand_times_keeps_nothing() -> None:
    story = Story().afternoon()
    state = story.source.state
    assert state is not None
    chart = chart_of(View(state=state, now=story.source.now()), Scale.LOG, Zoom.SO_FAR)
    draw(chart, 70, 16)
    tracemalloc.start()
    before = used()
    for _ in range(2_000):
        draw(chart, 70, 16)
    grown = used() - before
    tracemalloc.stop()
    assert grown < 20_000, f"{grown} bytes"
