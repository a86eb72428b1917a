"""Measures how much the monitor disturbs a GPU: a kernel of about 1 ms in a loop, with and without the 1 Hz poller beside it.

    python benchmarks/disturbance.py --pairs 6 --seconds 3

Blocks with and without the poller alternate, and which comes first alternates too. Target: medians within 0.5 %.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    kernel = find_kernel()
    blocks: dict[bool, list[list[float]]] = {True: [], False: []}
    poller = subprocess.Popen(
        [sys.executable, "-m", "sessions.telemetry.poller", str(ROOT)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert poller.stdout is not None
    try:
        print(f"a sample: {poller.stdout.readline()[:600].decode()}")
        poller.send_signal(signal.SIGSTOP)
        for pair in range(given.pairs):
            for beside in (True, False) if pair % 2 == 0 else (False, True):
                poller.send_signal(signal.SIGCONT if beside else signal.SIGSTOP)
                time.sleep(0.2)  # let a sample that was due pass
                blocks[beside].append(block(kernel, given.seconds))
                poller.send_signal(signal.SIGSTOP)
    finally:
        poller.send_signal(signal.SIGCONT)
        poller.kill()
        poller.wait()
    report(blocks, given.json)


def find_kernel() -> Callable[[], float]:
    """Return a function that runs a kernel of about a millisecond and gives its milliseconds by events."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("needs a CUDA device")
    x = torch.zeros(2**26, device="cuda")

    def run(times: int) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(times):
            x.add_(1.0)
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last))

    for _ in range(20):
        run(10)
    times = max(1, round(10 / run(10)))
    print(f"{torch.cuda.get_device_name()}: {times} additions to 256 MiB take {run(times):.3f} ms")
    return lambda: run(times)


def block(kernel: Callable[[], float], seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    times = []
    while time.perf_counter() < end:
        times.append(kernel())
    return times


def report(blocks: dict[bool, list[list[float]]], path: Path | None) -> None:
    medians = {beside: [statistics.median(b) for b in blocks[beside]] for beside in blocks}
    means = {beside: statistics.fmean(t for b in blocks[beside] for t in b) for beside in blocks}
    whole = {beside: statistics.median(t for b in blocks[beside] for t in b) for beside in blocks}
    for beside, name in ((True, "with the poller"), (False, "without")):
        count = sum(map(len, blocks[beside]))
        print(
            f"{name:16} median {whole[beside]:.5f} ms, mean {means[beside]:.5f} ms, {count} kernels, "
            f"block medians {min(medians[beside]):.5f} to {max(medians[beside]):.5f}"
        )
    found = {"median_ratio": whole[True] / whole[False], "mean_ratio": means[True] / means[False]}
    print(
        f"difference of medians {100 * (found['median_ratio'] - 1):+.3f} %, "
        f"of means {100 * (found['mean_ratio'] - 1):+.3f} % (target: under 0.5 %)"
    )
    if path is not None:
        path.write_text(json.dumps({**found, "with": medians[True], "without": medians[False]}, indent=1))


if __name__ == "__main__":
    main()
