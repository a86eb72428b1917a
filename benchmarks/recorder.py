"""What recording costs: microseconds an event, and a flood through a terminal beside `script` and `asciinema`.

    python benchmarks/recorder.py

Targets: under 20 microseconds an event. Peers are skipped, and named, where they are not installed.
"""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from sessions.record.clock import SystemClock
from sessions.record.events import ShellClosed
from sessions.recording.flood import FloodGate, Limits
from sessions.recording.handle import Recorders, ShellRequest
from sessions.recording.recorder import boottime
from sessions.recording.tape import Tape
from sessions.recording.wire import Frame, pack_frame
from sessions.recording.writer import SegmentWriter

EVENTS = 100_000
TARGET_MICROSECONDS = 20.0
UNLIMITED = Limits(bytes_per_second=1 << 40, burst_bytes=1 << 40, budget_bytes=1 << 40)
FLOOD = "seq 1 1500000"
QUIET = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"
REPEATS = 3


def microseconds_an_event(size: int) -> float:
    """Record events of `size` bytes as the recorder does; processor time of the path the bytes take.

    Hashing, check sums, writing and rotation are on it; syncing and compressing closed segments are not.
    """
    with tempfile.TemporaryDirectory() as folder:
        writer = SegmentWriter(
            Path(folder), recording=1, command="sh", size=(24, 80), clock=SystemClock(), nanoseconds=boottime
        )
        writer.start()
        tape = Tape(writer, FloodGate(UNLIMITED, boottime()), boottime)
        payload = os.urandom(size // 2) + b"x" * (size - size // 2)
        count = min(EVENTS, (100 << 20) // size)
        began = time.thread_time()
        for _ in range(count):
            tape.output(payload)
        spent = time.thread_time() - began
        tape.close()
    return spent / count * 1e6


def through_ours(command: str) -> float:
    """Run a command in a recorded shell without a terminal attached; seconds until it has ended."""

    async def record(folder: Path) -> float:
        recorders = Recorders(folder / "recordings", boottime=boottime)
        request = ShellRequest(
            folder, ("/bin/sh", "-c", f"read go; {command}"), dict(os.environ), folder / "s", limits=UNLIMITED
        )
        handle = await recorders.start(request)
        began = time.perf_counter()
        reader, writer = await asyncio.open_unix_connection(str(handle.socket))
        writer.write(pack_frame(Frame.HELLO, b'{"rows":24,"cols":80}') + pack_frame(Frame.INPUT, b"\n"))
        while await reader.read(1 << 20):
            pass
        spent = time.perf_counter() - began
        while not any(isinstance(event, ShellClosed) for event in recorders.poll()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return spent

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(record(Path(folder)))


def through(words: list[str]) -> float:
    """Run a recorder of somebody else's in a terminal and read what it shows; seconds until it has ended."""
    pid, master = pty.fork()
    began = time.perf_counter()
    if pid == 0:
        os.execvp(words[0], words)
    try:
        while os.read(master, 1 << 16):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(master)
    return time.perf_counter() - began


def peers(folder: Path, command: str) -> dict[str, list[str]]:
    inner = f"sh -c '{command}'"
    return {
        "no recorder": ["/bin/sh", "-c", command],
        "script -f": ["script", "-qf", "-c", inner, str(folder / "typescript")],
        "asciinema rec": ["asciinema", "rec", "-q", "--overwrite", "-c", inner, str(folder / "out.cast")],
    }


def main() -> int:
    worst = 0.0
    for size in (1, 80, 4095):
        spent = min(microseconds_an_event(size) for _ in range(REPEATS))
        worst = max(worst, spent)
        print(f"{size:5d} bytes an event: {spent:6.1f} microseconds")
    for name, command in (("a flood, 11 MB", FLOOD), ("20,000 lines one by one", QUIET)):
        print(name)
        print(f"  {'ours':16s} {median(through_ours(command) for _ in range(REPEATS)):6.2f} s")
        with tempfile.TemporaryDirectory() as folder:
            for peer, words in peers(Path(folder), command).items():
                if shutil.which(words[0]) is None:
                    print(f"  {peer:16s} not installed")
                    continue
                print(f"  {peer:16s} {median(through(words) for _ in range(REPEATS)):6.2f} s")
    print(
        f"target {TARGET_MICROSECONDS:.0f} microseconds an event: {'met' if worst < TARGET_MICROSECONDS else 'MISSED'}"
    )
    return 0 if worst < TARGET_MICROSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
