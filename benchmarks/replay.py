"""How long an 8-hour record takes to open, seek and list: python benchmarks/replay.py [SCORES].

Writes a record as a busy session leaves it (a heartbeat every 10 s, files changing every 20 s, scores with progress and
snapshots, notes, a sample of the machine every second), then measures what replay does with it. Medians; fresh processes
for opening, since that is what a reviewer waits for.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from environments.contract import ScoreStatus  # noqa: E402
from sessions.record import events as e  # noqa: E402
from sessions.record.clock import ManualClock  # noqa: E402
from sessions.record.log import Journal  # noqa: E402
from sessions.record.store import Record, Store  # noqa: E402
from tests.sessions.builders import opened  # noqa: E402

HOURS = 8
TARGET_OPEN, TARGET_SEEK, TARGET_MB = 2.0, 1.0, 400
OPEN = """
import resource, sys, time
began = time.perf_counter()
from sessions.record.store import Record
from workbench.review.moments import Film
from pathlib import Path
record = Record(Path(sys.argv[1]))
film = Film.read(record.log)
import workbench.tui.replay.screen
from sessions.telemetry.samples import read_samples
samples = list(read_samples(record.telemetry))
print(time.perf_counter() - began, len(film.events), len(samples), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main() -> int:
    scores = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        os.environ["REBENCH_HOME"] = folder
        record = Store().create()
        write_record(record, scores)
        opening = _open(record)
        seeking = _seek(record)
        listing = _time(folder, "sessions")
        stating = _time(folder, "replay", record.session, "--at", "4:00:00", "--json")
    print(f"seek              {seeking * 1000:8.2f} ms  (target {TARGET_SEEK:g} s)")
    print(f"replay --at --json{stating * 1000:8.0f} ms  whole command")
    print(f"sessions          {listing * 1000:8.0f} ms  whole command, one record")
    met = opening[0] < TARGET_OPEN and seeking < TARGET_SEEK and opening[1] < TARGET_MB
    print("targets met" if met else "TARGETS MISSED")
    return 0 if met else 1


def write_record(record: Record, scores: int) -> None:
    """Write the log without waiting for the disk, and the samples beside it."""
    clock, chance = ManualClock(), random.Random(1)
    os.fsync = lambda _descriptor: None  # the disk is not what is measured here
    journal = Journal(record.log, clock)
    tree = str(record.folder / "work")
    journal.append(opened(session=record.session, work_tree=tree, policy=e.SessionPolicy(HOURS * 3_600_000)))
    _score(journal, clock, 0, 2.0)
    journal.append(e.ConsentGiven("0" * 64))
    journal.append(e.ClockStarted())
    due = sorted(chance.uniform(60, HOURS * 3600 - 60) for _ in range(scores))
    for tick in range(1, HOURS * 360):
        clock.advance(9.9)
        journal.append(e.Heartbeat())
        if tick % 2 == 0:
            journal.append(e.ActivitySeen(1, chance.randrange(20), 0, ("train.py", "out/log.txt")))
        if tick % 30 == 0:
            journal.append(e.NoteWritten(f"note {tick}"))
        while due and due[0] < tick * 9.9:
            due.pop(0)
            _score(journal, clock, len(journal.state.scores), chance.uniform(1.0, 2.0))
    journal.close()
    record.telemetry.mkdir()
    _write_samples(record.telemetry / "samples.jsonl", journal.state.last.boottime)


def _score(journal: Journal, clock: ManualClock, number: int, raw: float) -> None:
    journal.append(e.ScoreRequested(number, f"try {number}"))
    reason = e.SnapshotReason.SCORE if number else e.SnapshotReason.START
    journal.append(
        e.SnapshotTaken(
            number, reason, "complete", f"{number:040x}", f"{number:040x}", 20, 4096, 0, 0.1, score=number
        )
    )
    for step in range(10):
        clock.advance(0.1)
        journal.append(e.ScoreProgressed(number, "evaluating", step / 10))
    found = {
        "snapshot": number,
        "commit": f"{number:040x}",
        "raw": raw,
        "status": ScoreStatus.VALID,
        "message": "loss",
        "seconds": 1.0,
    }
    journal.append(e.ScoreRecorded(number, **found) if number else e.StartingScoreRecorded(**found))


def _write_samples(path: Path, end: int) -> None:
    import msgspec

    from sessions.telemetry.samples import Gpu, GpuProcess, Sample

    gpu = Gpu(
        0,
        "NVIDIA H200",
        87.0,
        70 * 10**9,
        139 * 10**9,
        500.0,
        60.0,
        1900,
        False,
        (GpuProcess(1, "python", "jo", 1),),
    )
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for second in range(HOURS * 3600):
            moment = end - (HOURS * 3600 - second) * 10**9
            sample = Sample(
                moment,
                "2026-01-01T00:00:00.000Z",
                50.0,
                (50.0,) * 16,
                1.0,
                10**9,
                10**10,
                10**11,
                10**12,
                1,
                1,
                (gpu,),
            )
            file.write(encode(sample) + b"\n")


def _open(record: Record) -> tuple[float, float]:
    command = [sys.executable, "-c", OPEN, str(record.folder)]
    runs = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    seconds = statistics.median(float(run[0]) for run in runs)
    megabytes = max(int(run[3]) for run in runs) / 1024
    size = record.log.stat().st_size / 1e6
    print(f"record: {runs[0][1]} events ({size:.1f} MB), {runs[0][2]} samples")
    print(
        f"open              {seconds * 1000:8.0f} ms  log, samples and screen imported (target {TARGET_OPEN:g} s), {megabytes:.0f} MB"
    )
    return seconds, megabytes


def _seek(record: Record) -> float:
    from workbench.review.moments import Film

    film = Film.read(record.log)
    chance = random.Random(2)
    taken = []
    for _ in range(300):
        wanted = chance.randrange(HOURS * 3_600_000)
        began = time.perf_counter()
        film.at_elapsed(wanted)
        taken.append(time.perf_counter() - began)
    return statistics.quantiles(taken, n=100)[98]


def _time(home: str, *arguments: str) -> float:
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "REBENCH_HOME": home}, capture_output=True, check=True
        )
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
