"""Measures the timing environment itself: spread of repeated scores, what the harness adds, and what tricks gain.

    python benchmarks/triton_cumsum.py anchors --profile gpu --repeats 10
    python benchmarks/triton_cumsum.py harness --profile gpu
    python benchmarks/triton_cumsum.py cheats --profile gpu --beside 6

`anchors` scores the starter and the sealed reference in turn. `harness` times known functions in a plain process of their
own and through the harness, and compares the harness's figure with what the worker's own events say of the very same
calls: the difference is the error that is left after calibration. `cheats` scores the corpus.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from environments import assets, registry
from environments.contract import ScoreReport, Submission
from environments.sealing import PUBLIC_PASSPHRASE, unseal
from environments.triton_cumsum import environment as cumsum
from environments.triton_cumsum.settings import decode_settings
from environments.worker import Mount, WorkerLimits, confine

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "cheats" / "triton_cumsum"

COPIES = """
def prefix_sum(x, out):
    {body}
    return out
"""
KNOWN = {
    "1 copy": "out[...] = x",
    "2.5 copies": "out[...] = x; out[...] = x; out[: len(x) // 2] = x[: len(x) // 2]",
}
PLAIN = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from solution import prefix_sum
import inspect
length, slots, repeats, device = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
takes = "out" in inspect.signature(prefix_sum).parameters
def run(x, out):
    if takes:
        prefix_sum(x, out=out)
    else:
        out[...] = prefix_sum(x)
times = []
if device == "cpu":
    import numpy as np
    for _ in range(repeats + 3):
        x = np.random.default_rng().integers(-10, 10, length, dtype=np.int8).astype(np.int32)
        out = np.zeros_like(x)
        start = time.perf_counter(); run(x, out); times.append(1000 * (time.perf_counter() - start))
else:
    import torch
    xs = [torch.empty(length, dtype=torch.int32, device="cuda") for _ in range(slots)]
    outs = [torch.empty_like(x) for x in xs]
    for _ in range(repeats + 3):
        for x in xs: x.copy_(torch.randint(-10, 10, (length,), dtype=torch.int32, device="cuda"))
        torch.cuda.synchronize()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for x, out in zip(xs, outs): run(x, out)
        last.record(); torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / slots)
print(json.dumps(times[3:]))
"""


class Bench:
    """The environment prepared in a store of its own."""

    def __init__(self, profile_name: str, changes: dict[str, Any]) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cumsum-bench-"))
        self.found = registry.find("triton_cumsum")
        self.environment = registry.load(self.found)
        self.name = profile_name
        spec = self.found.spec
        assets.prepare(self.environment, spec, profile_name, PUBLIC_PASSPHRASE, self.home, _quiet)
        self.folders = assets.folders_for(spec, profile_name, self.home)
        whole = spec.profile(profile_name)
        self.profile = msgspec.structs.replace(whole, settings={**whole.settings, **changes})
        self.settings = decode_settings(self.profile.settings)
        device = "gpu" if self.settings.on_gpu else "cpu"
        self.starter = self.found.folder / "starter" / device
        self.reference = self.home / "reference"
        unseal(self.found.folder / "protected" / "reference.sealed", self.reference, PUBLIC_PASSPHRASE)

    @contextmanager
    def laid_out(self, source: Path) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="cumsum-") as folder:
            root = Path(folder) / "root"
            if source.is_dir():
                shutil.copytree(source, root)
            else:
                root.mkdir()
                shutil.copyfile(source, root / "solution.py")
            yield root

    def score(self, source: Path) -> ScoreReport:
        with self.laid_out(source) as root, tempfile.TemporaryDirectory() as scratch:
            submission = Submission(
                root=root, profile_name=self.name, profile=self.profile, assets=self.folders,
                scratch=Path(scratch), seed=random.SystemRandom().randrange(2**31),
            )  # fmt: skip
            return self.environment.score(submission, _quiet)

    def plain(self, source: Path, repeats: int = 20) -> float:
        """Return the milliseconds of one call in a process of its own, without any harness."""
        with self.laid_out(source) as root:
            command = [sys.executable, "-c", PLAIN, str(root), str(self.settings.length)]
            command += [str(self.settings.slots), str(repeats), "cuda" if self.settings.on_gpu else "cpu"]
            hidden = {} if self.settings.on_gpu else {"CUDA_VISIBLE_DEVICES": ""}
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env={**os.environ, **hidden}
            )
        return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def anchors(bench: Bench, repeats: int, seconds: float) -> dict[str, Any]:
    """Score reference and starter in turn, for `seconds` at most; print their middle and spread."""
    end = time.monotonic() + seconds
    raws: dict[str, list[float]] = {"start": [], "reference": []}
    found: dict[str, Any] = {"scores": []}
    for _ in range(repeats):
        for name, source in (("reference", bench.reference), ("start", bench.starter)):
            if time.monotonic() > end:
                break
            began = time.perf_counter()
            score = bench.score(source)
            if score.raw is None:
                print(f"{name}: {score.status}: {score.message}\n{score.details.get('log', '')}")
                continue
            raws[name].append(score.raw)
            details = {k: v for k, v in score.details.items() if k not in ("log", "series")}
            found["scores"].append({"name": name, "raw": score.raw, **details})
            ms = details["milliseconds"]
            print(
                f"{name:10} raw {score.raw:.4f} {math.exp(score.raw):8.4f} ms, clock {ms['measured']['median']:.4f}, "
                f"harness {ms['overhead']['median']:.4f}, copy {ms['copy']['median']:.4f}, "
                f"n {ms['calls']['count']} +-{100 * ms['calls']['error']:.2f} %, {time.perf_counter() - began:.1f} s",
                flush=True,
            )
    for name, values in raws.items():
        if len(values) > 1:
            middle, spread = statistics.median(values), statistics.stdev(values)
            found[name] = {"raw": middle, "spread": spread, "repeats": len(values)}
            print(
                f"{name}: {math.exp(middle):.4f} ms, raw {middle:.4f}, standard deviation {100 * spread:.2f} % of the time, "
                f"range {100 * (max(values) - min(values)):.2f} %, {len(values)} scores"
            )
    return found


def harness(bench: Bench, only: Sequence[str]) -> dict[str, Any]:
    """Compare the harness's times with those of a plain process."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        sources = {"starter": bench.starter, "reference": bench.reference}
        for name, body in KNOWN.items():
            sources[name] = Path(folder, name.replace(" ", "_") + ".py")
            sources[name].write_text(COPIES.format(body=body))
        for name, source in sources.items():
            if only and name not in only:
                continue
            plain = bench.plain(source)
            timed = _timed(bench, source, copies=name in KNOWN)
            left = timed["calls"]["median"] - timed["said"]["median"]
            found[name] = {"plain": plain, **timed, "left": left}
            print(
                f"{name:12} by events in its own process {timed['said']['median']:.4f} ms, "
                f"harness {timed['calls']['median']:.4f} ms "
                f"(clock {timed['measured']['median']:.4f}, taken off {timed['overhead']['median']:.4f}), "
                f"left {1000 * left:+.1f} us = {100 * left / timed['said']['median']:+.2f} %; "
                f"in a plain process {plain:.4f} ms",
                flush=True,
            )
    return found


def cheats(bench: Bench, beside: int, only: Sequence[str]) -> dict[str, Any]:
    """Score the corpus: what must be refused `beside` at a time, what may pass one by one; print verdicts and gains."""
    from tests.cheats.triton_cumsum.small import promised, submissions

    corpus = submissions(CORPUS / ("submissions_gpu" if bench.settings.on_gpu else "submissions"))
    corpus = [c for c in corpus if not only or c.stem in only]
    alone = [c for c in corpus if "valid" in promised(c)]
    together = [c for c in corpus if c not in alone]
    found: dict[str, Any] = {}

    def one(cheat: Path) -> None:
        score = bench.score(cheat)
        ms = score.details.get("milliseconds", {}).get("calls", {}).get("median")
        right = score.status.value in promised(cheat)
        found[cheat.stem] = {"status": score.status.value, "ms": ms, "message": score.message, "right": right}
        time_said = "" if ms is None else f" {ms:.4f} ms"
        print(
            f"{'ok   ' if right else 'WRONG'} {cheat.stem:26} {score.status.value}{time_said}: {score.message[:150]}",
            flush=True,
        )
        if not right:
            print(score.details.get("log", "")[-1500:])

    with ThreadPoolExecutor(beside) as pool:
        list(pool.map(one, together))
    for cheat in alone:
        one(cheat)
    return found


def _timed(bench: Bench, source: Path, *, copies: bool) -> dict[str, Any]:
    """Return the harness's figures; `copies` judges results as copies of the input."""
    from environments.kit.timing import NotTimed, time_submission, worker_job

    made = cumsum.make_bench(bench.settings, cumsum.Keys(lengths=()), 1, bench.settings.length)
    if copies:
        made.workload.expected = lambda inputs: inputs[0]  # type: ignore[method-assign]
    with bench.laid_out(source) as root:
        limits = WorkerLimits.of(bench.profile.limits, threads=bench.settings.threads)
        job = worker_job(cumsum.HERE / "call.py", made, limits, mounts={"root": Mount(root)})
        timed = time_submission(made, job, cumsum.make_plan(bench.settings), random.Random(1), _quiet)
    made.close()
    if isinstance(timed, NotTimed):
        raise SystemExit(f"{source}: {timed.message}\n{timed.log}")
    figures: dict[str, Any] = timed.details()["milliseconds"]
    return figures


def _quiet(_progress: object) -> None:
    """Take progress and show nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("anchors", "harness", "cheats"))
    parser.add_argument("--profile", default="cpu")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--only", nargs="*", default=(), help="names of functions or tricks")
    parser.add_argument("--beside", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    changes: dict[str, Any] = {}
    if given.what == "cheats":
        from tests.cheats.triton_cumsum.small import DEVICE, HOST

        changes = dict(HOST if given.profile == "cpu" else DEVICE)
        if given.beside > 1:
            from environments.kit.timing import gpu_state

            gpu_state.why_busy = lambda reader: None  # type: ignore[assignment]
    bench = Bench(given.profile, changes)
    print(
        f"confinement {confine.best_level().value}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    match given.what:
        case "anchors":
            found = anchors(bench, given.repeats, given.seconds)
        case "harness":
            found = harness(bench, given.only)
        case _:
            found = cheats(bench, given.beside, given.only)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
