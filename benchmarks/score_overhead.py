"""What a score call costs beside the scorer's own work.

    python -m benchmarks.score_overhead [--json] [--rounds N]

Each round scores the tiny environment through a live host, over the socket, and then makes the same call into the
environment directly; the difference is the workbench's own: event, snapshot, checkout, process, event. Target: 0.3 s.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.sessions.live import TINY, Live, live

TARGET_SECONDS = 0.3


def through_the_host(session: Live, number: int) -> float:
    (session.work / "notes.txt").write_text(f"{number}\n")
    began = perf_counter()
    session.ask("score")
    return perf_counter() - began


def straight(session: Live, scratch: Path) -> float:
    """The same scorer on the same submission, nothing else."""
    public = session.store.home / "assets" / "tiny"
    request = {
        "action": "score",
        "slug": "tiny",
        "profile": "cpu",
        "folder": str(TINY),
        "home": str(session.store.home),
        "root": str(session.work),
        "scratch": str(scratch),
        "seed": 1,
    }
    assert public.exists()
    began = perf_counter()
    reading_command = [sys.executable, "-m", "environments.invoke", "--channel", "1"]
    done = subprocess.run(
        reading_command, input=json.dumps(request).encode(), capture_output=True, check=True
    )
    seconds = perf_counter() - began
    assert b'"valid"' in done.stdout
    return seconds


def measure(rounds: int) -> dict[str, float]:
    """Return medians in seconds."""
    with tempfile.TemporaryDirectory() as folder, live(Path(folder)) as session:
        session.begin()
        hosted, bare = [], []
        for number in range(rounds):
            scratch = Path(folder) / f"scratch-{number}"
            scratch.mkdir()
            hosted.append(through_the_host(session, number))
            bare.append(straight(session, scratch))
    overhead = [h - b for h, b in zip(hosted, bare, strict=True)]
    return {
        "through the host": median(hosted),
        "the scorer alone": median(bare),
        "overhead": median(overhead),
        "target": TARGET_SECONDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    found = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, seconds in found.items():
        print(f"{name:18} {seconds:6.3f} s")


if __name__ == "__main__":
    main()
