"""Draws the pictures of docs/screens from told sessions: `python -m tests.workbench.tui.pictures docs/screens`."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from sessions.record.events import ClockPaused, ConsentGiven, PauseReason
from tests.workbench.tui.story import RULES, Story
from workbench.tui.app import WorkbenchApp

FONT = "'JetBrains Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"


class Picture(NamedTuple):
    """One picture: a story, how large, in which theme, and what was pressed."""

    name: str
    story: Callable[[], Story]
    size: tuple[int, int]
    theme: str = "dark"
    keys: Sequence[str] = ()


def _afternoon() -> Story:
    return Story().afternoon().machine()


def _two_gpus() -> Story:
    return Story().afternoon().machine(gpus=2)


def _ready() -> Story:
    story = Story().open().starting()
    story.source.happen(ConsentGiven("0" * 64), "participant")
    return story


def _paused() -> Story:
    story = Story().afternoon().machine()
    story.source.happen(ClockPaused(PauseReason.BREAK, "tea"), "participant")
    return story


PICTURES = (
    Picture("ready", _ready, (120, 40)),
    Picture("main", _afternoon, (120, 40)),
    Picture("main-light", _afternoon, (120, 40), theme="light"),
    Picture("main-wide", _two_gpus, (200, 60)),
    Picture("main-small", _afternoon, (80, 24)),
    Picture("paused", _paused, (120, 40)),
    Picture("brief", _afternoon, (120, 40), keys=("b",)),
    Picture("score", _afternoon, (120, 40), keys=("down", "down", "enter")),
    Picture("submit", _afternoon, (120, 40), keys=("S",)),
)


async def draw(picture: Picture) -> str:
    """Return the picture as SVG that needs no network."""
    app = WorkbenchApp(picture.story().source, theme=picture.theme, rules=RULES, ascii_only=False)
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            if key:
                await pilot.press(key)
            for _ in range(8):
                await pilot.pause()
        svg = app.export_screenshot(title="rebench-workbench")
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    return svg.replace("Fira Code, monospace", FONT).replace("Fira Code", "JetBrains Mono")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        (folder / f"{picture.name}.svg").write_text(asyncio.run(draw(picture)), encoding="utf-8")


if __name__ == "__main__":
    main()
