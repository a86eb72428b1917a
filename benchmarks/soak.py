"""A long session, and what it costs in memory, disk and patience.

    python -m benchmarks.soak simulated           # eight hours on a manual clock: 300 scores, 2,880 heartbeats, notes
    python -m benchmarks.soak real --minutes 20   # a real host: 300 scores, 100 MB in a recorded shell, 200,000 files

Prints JSON: latencies in milliseconds, memory and disk in MB, first quarter beside the last, so that growth shows.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil

from sessions.audit.verify import verify
from sessions.record.events import SessionPolicy
from sessions.record.fold import fold
from tests.sessions.bench import ME, Bench
from tests.sessions.builders import valid
from tests.sessions.live import Live, live, until

HOURS = 8
SCORES = 300
OUTPUT_MB = 100
FILES = 200_000


def megabytes(path: Path) -> float:
    return round(sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / 1e6, 1)


def latencies(seconds: list[float]) -> dict[str, float]:
    quarter = max(1, len(seconds) // 4)
    return {
        "median ms": round(median(seconds) * 1000, 2),
        "p99 ms": round(quantiles(seconds, n=100)[98] * 1000, 2) if len(seconds) > 1 else 0.0,
        "first quarter ms": round(median(seconds[:quarter]) * 1000, 2),
        "last quarter ms": round(median(seconds[-quarter:]) * 1000, 2),
    }


async def simulated(folder: Path) -> dict[str, Any]:
    """Eight hours as fast as they go: what the engine keeps in memory and how long each thing takes."""
    policy = SessionPolicy(budget_ms=(HOURS + 1) * 3_600_000, snapshot_every_ms=None)
    bench = Bench(folder, *(valid(2.0 - number / 1000) for number in range(SCORES)), policy=policy)
    await bench.running()
    process = psutil.Process()
    before = process.memory_info().rss
    ticks: list[float] = []
    scores: list[float] = []
    every = HOURS * 3600 / SCORES
    for number in range(SCORES):
        for _ in range(int(every // 10)):
            bench.clock.advance(10)
            began = time.perf_counter()
            bench.engine.tick()
            ticks.append(time.perf_counter() - began)
        bench.write(f"{number}\n")
        began = time.perf_counter()
        await bench.scored(f"attempt {number}")
        scores.append(time.perf_counter() - began)
        bench.engine.note(f"note {number}", ME)
    grown = process.memory_info().rss - before
    began = time.perf_counter()
    report = verify(bench.record)
    verified = time.perf_counter() - began
    events = len(bench.journal.lines)
    await bench.die()
    return {
        "events": events,
        "tick": latencies(ticks),
        "score call, scripted scorer": latencies(scores),
        "memory grown MB": round(grown / 1e6, 1),
        "record MB": megabytes(bench.record.folder),
        "verify seconds": round(verified, 2),
        "sound": report.sound,
    }


def shell_output(session: Live, done: threading.Event) -> None:
    """Print a hundred megabytes into a recorded shell, as a training log would, only more."""
    socket = session.ask("open_shell")["socket"]
    line = "x" * 99
    command = f"yes {line} | head -c {OUTPUT_MB * 1_000_000}; exit\n"
    attach = [sys.executable, "-c", f"from sessions.recording.attach import run; run({socket!r})"]
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.execv(attach[0], attach)
    os.write(terminal, command.encode())
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:
        pass
    os.waitpid(child, 0)
    done.set()


def make_files(work: Path, done: threading.Event) -> None:
    script = (
        "import pathlib,sys\nroot=pathlib.Path(sys.argv[1])/'many'\n"
        f"for n in range({FILES}):\n"
        "    d=root/str(n//1000); d.mkdir(parents=True,exist_ok=True)\n"
        "    p=d/str(n); p.write_text(str(n)); p.unlink()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(work)], check=True)
    done.set()


def real(folder: Path, minutes: float) -> dict[str, Any]:
    with live(folder) as session:
        session.begin()
        host = psutil.Process(session.host_pid())
        shell_done, files_done = threading.Event(), threading.Event()
        threading.Thread(target=shell_output, args=(session, shell_done), daemon=True).start()
        threading.Thread(target=make_files, args=(session.work, files_done), daemon=True).start()
        began = time.monotonic()
        memory: list[float] = []
        scores: list[float] = []
        statuses: list[float] = []
        for number in range(SCORES):
            session.solve(f"{3 + number / 1000} * x - 1")
            at = time.perf_counter()
            session.ask("score", note=f"attempt {number}")
            scores.append(time.perf_counter() - at)
            at = time.perf_counter()
            session.ask("status")
            statuses.append(time.perf_counter() - at)
            memory.append(host.memory_info().rss / 1e6)
            due = began + minutes * 60 * (number + 1) / SCORES
            time.sleep(max(0.0, due - time.monotonic()))
        until(lambda: shell_done.is_set() and files_done.is_set(), 600)
        times = host.cpu_times()
        elapsed = time.monotonic() - began
        state = fold(session.events())
        at = time.perf_counter()
        report = verify(session.record)
        verified = time.perf_counter() - at
        return {
            "minutes": round(elapsed / 60, 1),
            "events": state.last_seq + 1,
            "scores": sum(row.status == "valid" for row in state.scores),
            "score call": latencies(scores),
            "status": latencies(statuses),
            "host memory MB, start and end": [round(memory[0], 1), round(memory[-1], 1)],
            "host CPU, percent of a core": round(100 * (times.user + times.system) / elapsed, 2),
            "record MB": megabytes(session.record.folder),
            "recordings MB": megabytes(session.record.recordings),
            "recording gaps": state.recording_gaps,
            "lights not green": [part for part, health in state.health.items() if health.light != "green"],
            "verify seconds": round(verified, 2),
            "sound": report.sound,
            "problems": report.problems[:3],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("simulated", "real"))
    parser.add_argument("--minutes", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.kind == "simulated":
            found = asyncio.run(simulated(Path(folder)))
        else:
            found = real(Path(folder), arguments.minutes)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
