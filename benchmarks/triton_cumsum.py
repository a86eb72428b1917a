"""Measures the timing environment itself: spread of repeated scores, what the harness adds, and what tricks gain.

    python benchmarks/triton_cumsum.py anchors --profile gpu --repeats 10
    python benchmarks/triton_cumsum.py harness --profile gpu
    python benchmarks/triton_cumsum.py cheats --profile gpu --beside 6 --level account
    python benchmarks/triton_cumsum.py summary --log results.jsonl

`anchors` scores the starter and the sealed reference in turn. `harness` times known functions through the harness (and,
with `--plain`, in a process of their own without it), and compares the harness's figure with what the worker's own events
say of the very same calls: the difference is the error that is left after calibration. `cheats` scores the corpus. Every
result is appended to `--log` as it comes; `summary` reads such a file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cumsum_bench import Bench

from environments.worker import confine
from environments.worker.jobs import Level

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
GAIN = 0.1
"""Share of the honest function's time that a trick must save to be called a gain; below it lies launching, not work."""
Record = Callable[[dict[str, Any]], None]


def anchors(bench: Bench, order: str, seconds: float, record: Record) -> None:
    """Score reference (`r`) and starter (`s`) in this order; begin none after `seconds`."""
    end = time.monotonic() + seconds
    named = {"r": ("reference", bench.reference), "s": ("start", bench.starter)}
    for letter in order:
        if time.monotonic() > end:
            return
        name, source = named[letter]
        began = time.perf_counter()
        score = bench.score(source)
        took = time.perf_counter() - began
        details = {k: v for k, v in score.details.items() if k not in ("log", "series")}
        message = score.message if score.raw is None else None
        record({
            "what": "anchor", "name": name, "status": score.status.value, "raw": score.raw, "seconds": took,
            "message": message, **details,
        })  # fmt: skip
        if message is not None:
            print(f"{name}: {score.status.value}: {message}\n{score.details.get('log', '')}", flush=True)
        if (ms := details.get("milliseconds")) is None:
            continue
        shown = ms["calls"]["median"] if score.raw is None else math.exp(score.raw)
        print(
            f"{name:10} raw {math.nan if score.raw is None else score.raw:.4f} {shown:8.4f} ms "
            f"+-{100 * details['uncertainty']:.2f} %, "
            f"clock {ms['measured']['median']:.4f}, harness {ms['overhead']['median']:.4f} "
            f"(appearing {ms['reveal']['median']:.4f}, here {ms['own_reveal']['median']:.4f}, "
            f"rest {ms.get('rest_before', math.nan):.4f} then {ms.get('rest_after', math.nan):.4f}), "
            f"copy {ms['copy']['median']:.4f}, n {ms['calls']['count']}, {took:.1f} s, "
            f"attempts {details.get('attempts')} {details.get('confinement', {}).get('level')}, looks {details.get('gpu', {}).get('looks')} "
            f"{' '.join(details['flags'])} {details['stages']}",
            flush=True,
        )


def harness(bench: Bench, only: Sequence[str], repeats: int, *, plain: bool, record: Record) -> None:
    """Compare the harness's times with the worker's own events."""
    with tempfile.TemporaryDirectory() as folder:
        sources = {
            "1 copy": Path(),
            "2.5 copies": Path(),
            "reference": bench.reference,
            "starter": bench.starter,
        }
        for name, body in KNOWN.items():
            sources[name] = Path(folder, name.replace(" ", "_") + ".py")
            sources[name].write_text(COPIES.format(body=body))
        chosen = [name for name in sources if not only or name in only]
        for name in chosen * repeats:
            try:
                timed = bench.figures(sources[name], copies=name in KNOWN)
            except RuntimeError as error:  # a disturbance passes; the rest is still wanted
                print(f"{name:12} not timed: {error}", flush=True)
                continue
            said = timed["said"]["median"]
            left = timed["calls"]["median"] - said
            alone = bench.plain(sources[name]) if plain else None
            record({"what": "harness", "name": name, **timed, "left": left, "plain": alone})
            print(
                f"{name:12} by events in its own process {said:.4f} ms, harness {timed['calls']['median']:.4f} ms "
                f"+-{100 * timed['uncertainty']:.2f} % (clock {timed['measured']['median']:.4f}, "
                f"harness {timed['overhead']['median']:.4f}), left {1000 * left:+.1f} us = {100 * left / said:+.2f} % "
                f"{' '.join(timed['flags'])}"
                + ("" if alone is None else f"; in a plain process {alone:.4f} ms"),
                flush=True,
            )


def cheats(bench: Bench, beside: int, only: Sequence[str], record: Record) -> None:
    """Score the corpus; print verdicts, and what tricks that are let pass gain over the honest function.

    Those that may pass are timed one at a time; with `beside`, others are started meanwhile.
    """
    from environments.triton_cumsum.timing import measure
    from tests.cheats.triton_cumsum.small import promised, submissions

    corpus = submissions(CORPUS / ("submissions_gpu" if bench.settings.on_gpu else "submissions"))
    corpus = [c for c in corpus if not only or c.stem in only]
    alone = [c for c in corpus if "valid" in promised(c)]
    together = [c for c in corpus if c not in alone]
    honest: list[float] = []

    def one(cheat: Path) -> None:
        try:
            score = bench.score(cheat)
        except Exception as error:  # noqa: BLE001  (the rest of the corpus is still wanted)
            record(
                {
                    "what": "cheat",
                    "name": cheat.stem,
                    "status": "fault",
                    "right": False,
                    "message": str(error),
                }
            )
            print(f"FAULT {cheat.stem}: {traceback.format_exc()[-1500:]}", flush=True)
            return
        ms = score.details.get("milliseconds", {}).get("calls", {}).get("median")
        if ms is not None and cheat.stem == "honest_torch":
            honest.append(ms)
        gain = 1 - ms / honest[0] if ms is not None and honest and "honest" not in cheat.stem else None
        right = score.status.value in promised(cheat)
        level = score.details.get("confinement", {}).get("level")
        flags = score.details.get("flags", [])
        record({
            "what": "cheat", "name": cheat.stem, "status": score.status.value, "ms": ms, "gain": gain,
            "message": score.message, "right": right, "level": level, "flags": flags,
        })  # fmt: skip
        mark = "WRONG" if not right else "GAINS" if gain is not None and gain > GAIN else "ok"
        shown = (
            "" if ms is None else f" {ms:.4f} ms" + ("" if gain is None else f", gain {100 * gain:+.0f} %")
        )
        print(
            f"{mark:5} {cheat.stem:26} {score.status.value}{shown} {' '.join(flags)}: {score.message[:150]}",
            flush=True,
        )
        if not right:
            print(str(score.details.get("log", ""))[-1500:], flush=True)

    with ThreadPoolExecutor(beside) as pool:
        list(pool.map(one, together))
    lock, real = threading.Lock(), measure.measure

    def exclusive(*arguments: Any) -> Any:
        with lock:
            return real(*arguments)

    measure.measure = exclusive
    with ThreadPoolExecutor(min(beside, 3)) as pool:
        first = [c for c in alone if c.stem == "honest_torch"]
        for cheat in first:
            one(cheat)
        list(pool.map(one, [c for c in alone if c not in first]))
    measure.measure = real


def summarise(path: Path) -> None:
    """Print what a results file holds, however far it got."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    unsteady = [r["name"] for r in rows if r["what"] == "anchor" and r["raw"] is None]
    if unsteady:
        print(f"no score: {', '.join(unsteady)}")
    for name in ("start", "reference"):
        found = [r for r in rows if r["what"] == "anchor" and r["name"] == name and r["raw"] is not None]
        if len(found) < 2:
            continue
        raws = [r["raw"] for r in found]
        middle, spread = statistics.median(raws), statistics.stdev(raws)
        foretold = statistics.median(r["uncertainty"] for r in found)
        copies = statistics.median(r["milliseconds"]["copy"]["median"] for r in found)
        costs = [r["milliseconds"]["overhead"]["median"] for r in found]
        print(
            f"{name}: {math.exp(middle):.4f} ms, raw {middle:.4f}, standard deviation {100 * spread:.2f} % "
            f"(foretold {100 * foretold:.2f} %), range {100 * (max(raws) - min(raws)):.2f} %, {len(found)} scores, "
            f"{statistics.median(r['seconds'] for r in found):.1f} s each; copy {copies:.4f} ms; harness's cost "
            f"{statistics.median(costs):.4f} ms, from score to score {100 * statistics.stdev(costs) / statistics.mean(costs):.2f} %; "
            f"confinement {', '.join(sorted({r['confinement']['level'] for r in found}))}"
        )
    for name in dict.fromkeys(r["name"] for r in rows if r["what"] == "harness"):
        found = [r for r in rows if r["what"] == "harness" and r["name"] == name]
        left = [100 * r["left"] / r["said"]["median"] for r in found]
        print(f"harness, {name}: left over {', '.join(f'{x:+.2f} %' for x in left)}")
    tricks = [r for r in rows if r["what"] == "cheat"]
    wrong = [r["name"] for r in tricks if not r["right"]]
    gains = {r["name"]: f"{100 * r['gain']:+.0f} %" for r in tricks if r.get("gain") is not None}
    if tricks:
        levels = ", ".join(sorted({r["level"] for r in tricks if r.get("level")}))
        print(
            f"tricks: {len(tricks)}, wrong verdicts: {wrong or 'none'}; confinement {levels}; gains of those let pass: {gains}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("anchors", "harness", "cheats", "summary"))
    parser.add_argument("--profile", default="cpu")
    parser.add_argument(
        "--repeats", type=int, help="scores of each anchor (10), or times each known function runs (1)"
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no further anchor score after these"
    )
    parser.add_argument(
        "--order", help="score anchors in this order, a letter each: r(eference), s(tart); for example rsrrs"
    )
    parser.add_argument("--only", nargs="*", default=(), help="names of functions or tricks")
    parser.add_argument("--plain", action="store_true", help="time known functions without the harness too")
    parser.add_argument("--beside", type=int, default=1, help="tricks scored at once")
    parser.add_argument("--level", choices=[level.value for level in Level], help="confine workers this way")
    parser.add_argument(
        "--log", type=Path, default=Path(os.devnull), help="append each result here, a line each"
    )
    given = parser.parse_args()
    if given.what == "summary":
        summarise(given.log)
        return
    level = force(given.level)
    changes: dict[str, Any] = {}
    if given.what == "cheats":
        from tests.cheats.triton_cumsum.small import DEVICE, HOST

        changes = dict(HOST if given.profile == "cpu" else DEVICE)
        if given.beside > 1:
            from environments.triton_cumsum.timing.bystanders import Bystanders

            # Those scored beside each other use the GPU on purpose.
            Bystanders.why_busy = Bystanders.why_disturbed = lambda self: None  # type: ignore[method-assign]
    bench = Bench(given.profile, changes)
    print(
        f"confinement {level.value}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True
    )

    def record(row: dict[str, Any]) -> None:
        with given.log.open("a") as file:
            file.write(json.dumps({"asked": level.value, **row}) + "\n")

    match given.what:
        case "anchors":
            anchors(
                bench,
                given.order or ("rssr" * (given.repeats or 10))[: 2 * (given.repeats or 10)],
                given.seconds,
                record,
            )
        case "harness":
            harness(bench, given.only, given.repeats or 1, plain=given.plain, record=record)
        case _:
            cheats(bench, given.beside, given.only, record)


def force(name: str | None) -> Level:
    """Confine all workers of this process in the way asked for; end with an explanation where that is not possible."""
    if name is None:
        return confine.best_level()
    level = Level(name)
    if level not in confine.levels():
        available = ", ".join(found.value for found in confine.levels())
        sys.exit(f"workers cannot be confined by {name} here; possible: {available}")
    confine.best_level = lambda: level
    return level


if __name__ == "__main__":
    main()
