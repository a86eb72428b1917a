"""How many events a second `verify` recomputes: `python -m benchmarks.verify_events [--events 200000]`.

The peer in the same run hashes the same lines and decodes them as JSON, and does nothing else.
"""

import argparse
import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from environments.contract import ScoreStatus
from sessions.audit.verify import verify
from sessions.record.clock import ManualClock
from sessions.record.events import ClockStarted, Heartbeat, NoteWritten, ScoreRequested, StartingScoreRecorded
from sessions.record.log import Journal
from sessions.record.store import Record
from tests.sessions.builders import opened

ROUNDS = 5


def long_log(folder: Path, events: int) -> Record:
    """A log as a long session leaves it; written without waiting for the disk."""
    record = Record(folder / "sessions" / "s-test")
    record.folder.mkdir(parents=True)
    record.brief.write_bytes(b"")
    clock = ManualClock()
    waiting, os.fsync = os.fsync, lambda _: None
    try:
        with Journal(record.log, clock) as journal:
            journal.append(opened(brief_sha256=sha256(b"").hexdigest()))
            journal.append(ScoreRequested(0))
            journal.append(StartingScoreRecorded(0, "c0", 2.0, ScoreStatus.VALID, "", 1.0))
            journal.append(ClockStarted())
            for number in range(events):
                clock.advance(0.1)
                journal.append(NoteWritten("a thought") if number % 50 == 0 else Heartbeat())
    finally:
        os.fsync = waiting
    return record


def bare(record: Record) -> None:
    for line in record.log.read_bytes().split(b"\n")[:-1]:
        sha256(line).hexdigest()
        msgspec.json.decode(line)


def seconds_of(action: object, record: Record) -> float:
    began = perf_counter()
    action(record)  # type: ignore[operator]
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=200_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        record = long_log(Path(folder), events)
        ours, peer = [], []
        for _ in range(ROUNDS):
            ours.append(seconds_of(lambda r: verify(r, deep=False), record))
            peer.append(seconds_of(bare, record))
        report = verify(record, deep=False)
    found = {
        "events": events,
        "verify, events a second": round(events / median(ours)),
        "hash and decode alone, events a second": round(events / median(peer)),
        "ratio": round(median(ours) / median(peer), 2),
        "target, events a second": 100_000,
        "problems": report.problems[:1],
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
