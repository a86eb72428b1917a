"""aristocratos/btop 1612: stalled GPU calls abort the monitor. Here only the panel says stale, and time goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from sessions.telemetry import TelemetryWatch
from sessions.telemetry.backends import ScriptedGpus
from sessions.telemetry.poller import take_sample
from sessions.telemetry.samples import Gpu, Sample
from tests.workbench.tui.story import Story
from tests.workbench.tui.support import screen_text, showing, until

pytestmark = pytest.mark.failures

# Says a sample for each line it is given: as long as nothing comes, it stands in a driver call that does not return.
POLLER = """
import sys
with open(sys.argv[1]) as given:
    for line in given:
        sys.stdout.write(line)
        sys.stdout.flush()
"""
GOOD = Gpu(0, "NVIDIA H200", 87.0, 71_000_000_000, 150_000_000_000, 512.0, 61.0)


class Driver:
    """A poller process whose driver answers only when told to."""

    def __init__(self, story: Story, folder: Path) -> None:
        self._story = story
        self._pipe = folder / "driver"
        os.mkfifo(self._pipe)
        self.seen: list[Sample] = []
        command = (sys.executable, "-c", POLLER, str(self._pipe))
        self.watch = TelemetryWatch(folder / "telemetry", folder, self._take, command=command)
        self._end: int | None = None

    def _take(self, sample: Sample) -> None:
        self.seen.append(sample)
        self._story.source.sample(sample)

    async def start(self) -> None:
        self.watch.start()
        # Opening for both keeps the pipe open and never blocks.
        self._end = os.open(self._pipe, os.O_RDWR)

    def answer(self, *gpus: Gpu | Exception) -> None:
        """Let one reading come back."""
        backend = ScriptedGpus(gpus[0]) if isinstance(gpus[0], Exception) else ScriptedGpus(tuple(gpus))  # type: ignore[arg-type]
        sample = take_sample(self._story.source.clock, backend, self._pipe.parent)
        assert self._end is not None
        os.write(self._end, msgspec.json.encode(sample) + b"\n")

    async def stop(self) -> None:
        await self.watch.stop()
        if self._end is not None:
            os.close(self._end)


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[tuple[Story, Driver]]:
    story = Story().afternoon()
    driver = Driver(story, tmp_path)
    await driver.start()
    yield story, driver
    await driver.stop()


async def test_a_driver_that_blocks_a_minute_and_loses_the_gpu_stops_nothing_but_its_panel(
    told: tuple[Story, Driver],
) -> None:
    story, driver = told
    clock = story.source.clock
    async with showing(story) as pilot:
        app = pilot.app

        def shows(text: str) -> Callable[[], bool]:
            return lambda: text in screen_text(app)

        driver.answer(GOOD)
        await until(pilot, shows("87%"))
        assert "stale" not in screen_text(app)

        # The driver stands; each second the countdown moves by one all the same.
        for second in range(1, 61):
            before = app.view.remaining_ms
            clock.advance(1)
            assert app.view.remaining_ms == before - 1000
            if second in {6, 30, 60}:
                await until(pilot, shows(f"stale {second} s"))
        await until(pilot, shows("used 1:20:51"))

        driver.answer(Gpu(0, "NVIDIA H200", problem="GPU is lost"))
        await until(pilot, shows("lost  GPU is lost"))
        assert "stale" not in screen_text(app)

        driver.answer(RuntimeError("driver not loaded"))
        await until(pilot, shows("GPU  N/A"))
        assert "RuntimeError: driver not" in screen_text(app)

        driver.answer(GOOD)
        await until(pilot, shows("71 / 150 GB"))


async def test_figures_the_driver_does_not_give_are_not_shown_as_nought(told: tuple[Story, Driver]) -> None:
    story, driver = told
    async with showing(story) as pilot:
        driver.answer(replace(GOOD, utilisation=None, memory_used=None, power_watts=None, mig=True))
        await until(pilot, lambda: "N/A / 150 GB" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        assert "MIG" in text
        assert " 0%" not in text


async def test_the_countdown_is_painted_every_second_while_the_driver_stands(
    told: tuple[Story, Driver],
) -> None:
    """On the machine's own clock: three whole seconds, three different countdowns, evenly spaced."""
    story, _ = told
    loop = asyncio.get_running_loop()
    began = loop.time()
    story.source.clock.now = _ticking(story, loop, began)  # type: ignore[method-assign]
    async with showing(story) as pilot:
        painted: dict[str, float] = {}

        def note() -> bool:
            painted.setdefault(screen_text(pilot.app).split("used ")[1][:7], loop.time())
            return len(painted) >= 5

        await until(pilot, note)
        gaps = [
            later - earlier
            for earlier, later in zip(list(painted.values())[1:], list(painted.values())[2:], strict=False)
        ]
        assert all(0.5 < gap < 1.6 for gap in gaps), gaps


def _ticking(story: Story, loop: asyncio.AbstractEventLoop, began: float) -> Callable[[], object]:
    start = story.source.clock.now()
    return lambda: replace(start, boottime=start.boottime + int((loop.time() - began) * 1e9))
