"""What a worker and a whole call cost beside a bare Python that does the same.

    python -m benchmarks.worker [--json] [--rounds N]

Each round runs all in turn, so that a busy machine slows them alike: a bare `python -I -S` that answers over a pipe, a
worker at every level this machine has, a bare Python that imports what a scorer imports, and `environments.invoke`
with a scorer that does nothing. Medians and differences count; the target is 0.3 s for either difference.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from environments import calls
from environments.invoke import Action, InvokeRequest
from environments.worker import Answered, Level, Mount, WorkerJob, WorkerLimits, confine, run_untrusted

TARGET_SECONDS = 0.3
ENTRY = "def answer(request):\n    return {'sum': sum(request.blobs['numbers'])}, {}\n"
BARE = "import json, sys; json.dump({'sum': sum(sys.stdin.buffer.read())}, sys.stdout)"
NUMBERS = bytes(range(256))
SPECIFICATION = """
slug = "nothing"
title = "Nothing"
summary = "Scores at once."
version = "1"
direction = "lower"
raw_label = "none"
deliverables = []
profiles.cpu.summary = "nothing"
profiles.cpu.needs = {}
profiles.cpu.limits.score_seconds = 10.0
"""
ENVIRONMENT = """
from environments.contract import ScoreReport

class Nothing:
    prepare = starter = check = None.__class__
    def score(self, submission, report):
        return ScoreReport.valid(1.0, "nothing")

environment = Nothing()
"""


def bare() -> None:
    done = subprocess.run(
        [confine.interpreter(), "-I", "-S", "-c", BARE], input=NUMBERS, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == {"sum": sum(NUMBERS)}


def bare_imports() -> None:
    subprocess.run([sys.executable, "-c", "import environments.contract"], capture_output=True, check=True)


def worker(folder: Path, level: Level) -> Callable[[], None]:
    (folder / "entry.py").write_text(ENTRY)
    (folder / "root").mkdir(exist_ok=True)
    job = WorkerJob(
        entry=folder / "entry.py",
        mounts={"root": Mount(folder / "root")},
        limits=WorkerLimits(seconds=10),
        blobs={"numbers": NUMBERS},
    )

    def run() -> None:
        outcome = run_untrusted(job, level=level)
        assert isinstance(outcome, Answered), outcome
        assert outcome.body == {"sum": sum(NUMBERS)}

    return run


def invoke(folder: Path) -> Callable[[], None]:
    place = folder / "nothing"
    place.mkdir()
    (place / "environment.toml").write_text(SPECIFICATION)
    (place / "environment.py").write_text(ENVIRONMENT)
    request = InvokeRequest(
        action=Action.SCORE,
        slug="nothing",
        profile="cpu",
        folder=place,
        root=folder,
        scratch=folder / "scratch",
    )

    def run() -> None:
        assert calls.score(request, lambda _progress: None).raw == 1.0

    return run


def measure(rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        levels = dict.fromkeys([confine.best_level(), Level.GROUP])
        ways: dict[str, Callable[[], None]] = {"bare python": bare, "bare contract import": bare_imports}
        ways |= {f"worker, {level}": worker(folder, level) for level in levels}
        ways["a call that scores nothing"] = invoke(folder)
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, action in ways.items():
                began = perf_counter()
                action()
                seconds[way].append(perf_counter() - began)
    return {way: median(found) for way, found in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    found = measure(options.rounds)
    worst = max(seconds - found["bare python"] for seconds in found.values())
    if options.json:
        print(json.dumps({"seconds": found, "worst_overhead": worst, "target": TARGET_SECONDS}))
    else:
        for way, seconds in found.items():
            print(f"{way:28} {seconds * 1000:7.1f} ms   {(seconds - found['bare python']) * 1000:+7.1f} ms")
        print(
            f"largest overhead {worst:.3f} s, target {TARGET_SECONDS} s: {'met' if worst < TARGET_SECONDS else 'MISSED'}"
        )
    return 0 if worst < TARGET_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
