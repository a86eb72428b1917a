"""What the screen costs: first paint, idle work, and growth over eight hours; each beside a peer in the same run.

    python benchmarks/tui.py [--seconds 30] [--repeats 7] [--json]

Targets: first paint under 0.6 s; idle under 0.5 % of a core and 1 KB/s; no growth over 8 h with 300 scores.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

PEER = """
from textual.app import App
from textual.widgets import Static
class Peer(App):
    def compose(self):
        yield Static("peer painted", markup=False)
Peer().run()
"""
SCORES = 300
HOURS = 8


def live_program(gpus: int) -> None:
    """Show a session on the machine's own clock with a sample a second, until killed."""
    from msgspec.structs import replace

    from sessions.record.clock import Instant, SystemClock
    from tests.workbench.tui.story import Story, machine_sample
    from workbench.tui import run
    from workbench.tui.scripted import ScriptedSource

    system = SystemClock()

    class Ticking(ScriptedSource):
        """The told past, then real time."""

        shift = 0

        def now(self) -> Instant:
            now = system.now()
            return replace(super().now(), boottime=now.boottime + self.shift, at=now.at)

        async def start(self) -> None:
            self._beat = asyncio.create_task(self._sampling())

        async def _sampling(self) -> None:
            chance = random.Random(1)
            while True:
                await asyncio.sleep(1)
                self.sample(machine_sample(self.now().boottime, gpus, chance))

    source = Ticking()
    story = Story(source).afternoon()
    # Nothing may be left running: idle is what is measured.
    story.record(6, 1.29)
    source.shift = ScriptedSource.now(source).boottime - system.now().boottime
    run(source)


def first_paint(arguments: list[str], text: bytes) -> tuple[float, float]:
    """Return seconds, and processor seconds, from the start until `text` has reached the terminal."""
    from tests.workbench.tui.pseudo_terminal import PseudoTerminal

    with PseudoTerminal(*arguments) as terminal:
        terminal.until(lambda: text in terminal.output, "the first paint")
        return time.monotonic() - terminal.began, processor_seconds(terminal.process.pid)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(gpus: int, seconds: float) -> dict[str, float]:
    """Return what an idle screen costs a second."""
    from tests.workbench.tui.pseudo_terminal import PseudoTerminal

    with PseudoTerminal(__file__, "--program", str(gpus)) as terminal:
        terminal.until(lambda: b"detach" in terminal.output, "the first paint")
        settle = time.monotonic() + 5
        while time.monotonic() < settle:
            terminal.read(0.2)
        began, spent, written = (
            time.monotonic(),
            processor_seconds(terminal.process.pid),
            len(terminal.output),
        )
        while time.monotonic() - began < seconds:
            terminal.read(0.5)
        took = time.monotonic() - began
        return {
            "core_percent": 100 * (processor_seconds(terminal.process.pid) - spent) / took,
            "bytes_per_second": (len(terminal.output) - written) / took,
        }


async def growth() -> dict[str, Any]:
    """Live through eight hours with 300 scores and samples every 10 s; memory after each hour, in MB."""
    from tests.workbench.tui.story import Story, machine_sample
    from workbench.tui.app import WorkbenchApp

    story = Story().open().starting().begin()
    chance = random.Random(2)
    app = WorkbenchApp(story.source)
    hours: list[float] = []
    tracemalloc.start()
    async with app.run_test(size=(120, 40)) as pilot:
        raw = 1.8
        for hour in range(HOURS):
            for _ in range(SCORES // HOURS + (hour < SCORES % HOURS)):
                for _ in range(9):
                    story.source.clock.advance(10)
                    story.source.sample(machine_sample(story.source.now().boottime, 1, chance))
                    await pilot.pause()
                raw = max(1.0, raw - chance.uniform(0, 0.004))
                story.score(raw + chance.uniform(0, 0.2), "a note of ordinary length")
                await pilot.pause()
            gc.collect()
            hours.append(tracemalloc.get_traced_memory()[0] / 1e6)
    tracemalloc.stop()
    assert app.view is not None
    return {"scores": len(app.view.state.scores) - 1, "megabytes_by_hour": [round(one, 2) for one in hours]}


def measure(seconds: float, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        peer = Path(folder) / "peer.py"
        peer.write_text(PEER)
        ours = [__file__, "--program", "0"]
        paints: dict[str, list[tuple[float, float]]] = {"workbench": [], "bare textual": []}
        for _ in range(repeats):
            paints["workbench"].append(first_paint(ours, b"detach"))
            paints["bare textual"].append(first_paint([str(peer)], b"peer painted"))
    return {
        "first_paint_seconds": _medians(paints, 0),
        "of_which_processor": _medians(paints, 1),
        "idle_without_gpu": idle(0, seconds),
        "idle_with_two_gpus": idle(2, seconds),
        "growth": asyncio.run(growth()),
        "load_average": os.getloadavg()[0],
    }


def _medians(paints: dict[str, list[tuple[float, float]]], which: int) -> dict[str, float]:
    return {name: round(statistics.median(one[which] for one in found), 3) for name, found in paints.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to watch the idle screen")
    parser.add_argument("--repeats", type=int, default=7, help="first paints of each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--program", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program is not None:
        live_program(options.program)
        return
    found = measure(options.seconds, options.repeats)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
