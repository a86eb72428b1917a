"""How fast a long recording opens and seeks: 100 MB of full-screen redraws, with and without its keyframes.

    python benchmarks/replay_open.py

Targets: open under 2 s, seek to 95 % under 1 s, under 400 MB. The peer is pyte, the Python terminal emulator, fed the
output up to the same place, where it is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sessions.record.clock import ManualClock
from sessions.recording.format import Kind
from sessions.recording.keyframes import build_keyframes
from sessions.recording.reader import Recording
from sessions.recording.terminal import Terminal
from sessions.recording.writer import SegmentWriter

TOTAL = 100_000_000
ROWS, COLS = 50, 120
OPEN_SECONDS, SEEK_SECONDS, MEGABYTES = 2.0, 1.0, 400.0
PEER_BYTES = 2_000_000

MEASURE = """
import json, resource, sys, time
from pathlib import Path
from sessions.recording.player import Player
began = time.perf_counter()
player = Player(Path(sys.argv[1]))
player.screen_at(player.recording.began)
opened = time.perf_counter()
start, end = player.recording.began, player.recording.ended()
seeks = []
for percent in (95, 20, 60, 5, 80):
    at = time.perf_counter()
    exact = player.screen_at(start + (end - start) * percent // 100).exact
    seeks.append(time.perf_counter() - at)
print(json.dumps({"open": opened - began, "seeks": seeks, "exact": exact,
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))
"""


def frame(number: int) -> bytes:
    """One redraw of a full screen, in colours."""
    return "".join(
        f"\x1b[{row + 1};1H\x1b[3{(row + number) % 8}m{row:3d}\x1b[0m loss {1 / (number + 1):.6f} \x1b[1mstep\x1b[0m {number}"
        f" {'#' * ((row + number) % 70)}\x1b[K"
        for row in range(ROWS)
    ).encode()


def write(folder: Path) -> float:
    """Record 100 MB over eight hours of a made-up clock; seconds it took."""
    clock = ManualClock()
    began = time.perf_counter()
    writer = SegmentWriter(
        folder,
        recording=1,
        command="sh",
        size=(ROWS, COLS),
        clock=clock,
        nanoseconds=lambda: clock.now().boottime,
    )
    writer.start()
    frames = [frame(number) for number in range(2000)]
    pause = 8 * 3600 / (TOTAL / (sum(map(len, frames)) / len(frames)))
    number = 0
    while writer.output_bytes < TOTAL:
        clock.advance(pause)
        writer.append(Kind.OUTPUT, frames[number % len(frames)])
        number += 1
    writer.close()
    return time.perf_counter() - began


def measure(folder: Path, label: str) -> bool:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(folder)], check=True, capture_output=True)
    found = json.loads(done.stdout)
    seeks = ", ".join(f"{seconds:.2f}" for seconds in found["seeks"])
    print(
        f"{label:18s} open {found['open']:.2f} s; seeks to 95, 20, 60, 5, 80 %: {seeks} s; {found['megabytes']:.0f} MB;"
        f" {'exact' if found['exact'] else 'not exact'}"
    )
    return bool(
        found["open"] < OPEN_SECONDS and max(found["seeks"]) < SEEK_SECONDS and found["megabytes"] < MEGABYTES
    )


def emulation(folder: Path) -> None:
    """Compare the speed of terminals, which decides how long a seek without keyframes would take."""
    output = b"".join(Recording(folder).segment(n).data for n in range(3))[:PEER_BYTES]
    terminal = Terminal(ROWS, COLS)
    began = time.perf_counter()
    terminal.feed(output)
    print(f"our terminal       {len(output) / 1e6 / (time.perf_counter() - began):.1f} MB/s")
    try:
        import pyte
    except ImportError:
        print("pyte               not installed")
        return
    stream = pyte.ByteStream(pyte.Screen(COLS, ROWS))
    began = time.perf_counter()
    stream.feed(output)
    print(f"pyte               {len(output) / 1e6 / (time.perf_counter() - began):.1f} MB/s")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"recorded {TOTAL / 1e6:.0f} MB in {write(folder):.1f} s", end="; ")
        print(f"{sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.1f} MB on disk")
        met = measure(folder, "without keyframes")
        began = time.perf_counter()
        count = build_keyframes(folder)
        print(f"{count} keyframes made in {time.perf_counter() - began:.1f} s")
        met = measure(folder, "with keyframes") and met
        emulation(folder)
    print("targets", "met" if met else "MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
