"""Measures what the bounds of optimize_llm_foundry must tell apart, and scores its starter and its sealed reference.

    python benchmarks/optimize_llm_foundry.py distances --profile cpu --seeds 1,2,3,4,5 --processes 2 --out DIR
    python benchmarks/optimize_llm_foundry.py distances --profile gpu --seeds 1 --only script,script:2 --devices 0,1 --out DIR
    python benchmarks/optimize_llm_foundry.py score --profile gpu --solution reference --out DIR
    python benchmarks/optimize_llm_foundry.py table DIR

`distances` trains the reference and variants of it on fresh rows (one draw a seed) and tells how far each result is from
the reference's, as a share of the reference's way from the base model, and how much further along that way. `script` among the names is the untouched script itself,
outside the sandbox, with the times of its stages; `script:2` runs it on two cards; a name that comes twice is run twice. Every result is one line of JSON at once.
`score` writes a line for every run and every comparison as they come, before the whole report: what a call that is cut has found
out is kept. `--out` is a folder, or a file that ends in .jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from optimize_llm_foundry_laid import SCRIPT, SLUG, Laid, load_reference, quiet
from optimize_llm_foundry_variants import VARIANTS, Variant, train_as

from environments import assets, registry
from environments.contract import Profile, Progress, Submission
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.result import read_weights
from environments.optimize_llm_foundry.settings import decode_settings
from environments.sealing import PUBLIC_PASSPHRASE, unseal

Weights = dict[str, Any]
_MOST_TOKENS = 16384
"""Of one pass on a card: fixed, so that a run does not depend on what else the card holds."""


def _far(found: Weights, ours: Weights, base: Weights) -> dict[str, Any]:
    """Return how far `found` is from `ours`, as a share of the way from `base`, whole and along that way."""
    norms, ways, products, squares = [], [], [], []
    for name, tensor in ours.items():
        theirs, start = (weights[name].to(tensor.device).double() for weights in (found, base))
        way = tensor.double() - start
        difference = theirs - tensor.double()
        norms.append(float(difference.norm()))
        ways.append(float(way.norm()))
        products.append(float((difference * way).sum()))
        squares.append(ways[-1] ** 2)
    large = [p / s for p, s in zip(products, squares, strict=True) if s > 0.001 * sum(squares)]
    return {
        "share": sum(norms) / sum(ways), "along": sum(products) / sum(squares),
        "along_of_large_tensors": [float(f"{share:.4g}") for share in large],
        "along_middle": statistics.median(large), "moved": sum(ways),
    }  # fmt: skip


def _work(number: int, card: str, tasks: Any, results: Any, laid: Laid, profile_name: str) -> None:
    """Take (seed, names) until there is none; the reference is trained once for each."""
    import torch

    own = card.split(",")[number % len(card.split(","))]
    on_card = own != "cpu"
    torch.set_num_threads(1 if not on_card else 2)
    device = torch.device("cuda", int(own)) if on_card else torch.device("cpu")
    fast = load_reference(laid.folder)
    most = _MOST_TOKENS if on_card else 10**9
    while (task := tasks.get()) is not None:
        seed, names = task
        said = {"profile": profile_name, "seed": seed, "quick": laid.quick, "device": own}
        try:
            options = laid.options(seed)
            began = time.monotonic()
            reference = train_as(fast, VARIANTS["again"], options, device, most)
            took = time.monotonic() - began
            base = read_weights(laid.base)
            moved = sum(
                float((w.double() - base[n].to(w.device).double()).norm()) for n, w in reference.items()
            )
            results.put({**said, "name": "reference", "moved": moved, "seconds": took})
            before = again = None
            for name in names:
                began = time.monotonic()
                more: dict[str, Any] = {}
                if name.startswith(SCRIPT):
                    cards = (
                        ",".join(card.split(",")[: int(name.partition(":")[2] or 1)]) if ":" in name else own
                    )
                    found, stages = laid.run_script(seed, "" if not on_card else cards)
                    honest, more = True, {"stages": stages}
                    if before is not None:
                        more["to_script_before"] = _far(found, before, base)
                    before = found
                else:
                    variant: Variant = VARIANTS[name]
                    found, honest = train_as(fast, variant, options, device, most), variant.honest
                trained = time.monotonic() - began
                if again is not None:  # a second reference: twice the figures for the same training
                    more["to_again"] = _far(found, again, base)
                elif name == "again":
                    again = found
                results.put({**said, "name": name, "honest": honest, **_far(found, reference, base), **more,
                             "seconds": trained})  # fmt: skip
        except Exception as error:  # noqa: BLE001  (one broken variant must not cost the others their time)
            results.put(
                {**said, "name": "|".join(names), "error": f"{type(error).__name__}: {error}"[-8000:]}
            )
    results.put(None)


def distances(arguments: argparse.Namespace) -> None:
    """Measure shares in several processes; every line is written as it comes."""
    profile = _profile(arguments)
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    kind = "cpu" if arguments.devices == "cpu" else "cuda"
    everything = [name for name, variant in VARIANTS.items() if kind in variant.devices]
    names = arguments.only.split(",") if arguments.only else everything
    # Names with commas in them are given by their beginning.
    names = [n if n.startswith(SCRIPT) else next(v for v in everything if v.startswith(n)) for n in names]
    with tempfile.TemporaryDirectory(prefix="foundry-bench-") as place:
        laid = Laid(profile, Path(place), quick=arguments.quick)
        laid.make_base()
        unseal(
            registry.find(SLUG).folder / "protected" / "reference.sealed",
            laid.folder / "reference",
            PUBLIC_PASSPHRASE,
        )
        context = multiprocessing.get_context("spawn")
        tasks, results = context.Queue(), context.Queue()
        scripts = [name for name in names if name.startswith(SCRIPT)]
        others = [name for name in names if not name.startswith(SCRIPT)]
        for seed in seeds:
            if scripts:
                tasks.put((seed, scripts))
            for part in range(arguments.parts):
                if chosen := others[part :: arguments.parts]:
                    tasks.put((seed, chosen))
        for _ in range(arguments.processes):
            tasks.put(None)
        # Not inherited: what a CPU run must not see, and how many threads each process has.
        workers = [
            context.Process(
                target=_work,
                args=(n, arguments.devices, tasks, results, laid, arguments.profile),
                daemon=True,
            )
            for n in range(arguments.processes)
        ]
        for worker in workers:
            worker.start()
        working = len(workers)
        while working:
            found = results.get()
            if found is None:
                working -= 1
                continue
            _write(_file(arguments.out, "distances"), found)
    table(arguments.out)


def _file(out: Path, name: str) -> Path:
    return out if out.suffix == ".jsonl" else out / f"{name}.jsonl"


def _write(path: Path, found: dict[str, Any]) -> None:
    """Append one line that survives whatever happens next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(found)
    print(line if len(line) < 1000 else line[:1000] + " ...", flush=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def table(out: Path) -> None:
    """Print shares and parts along the way of every variant, furthest honest and nearest wrong ones beside each other."""
    path = _file(out, "distances")
    shares: dict[tuple[bool, str], list[tuple[float, float]]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        for figures in (found, found.get("to_again", {})):
            if "share" in figures:
                shares[not found["honest"], found["name"]].append(
                    (figures["share"], figures.get("along", math.nan))
                )
    rows = sorted(shares.items(), key=lambda item: (item[0][0], statistics.median(s for s, _ in item[1])))
    text = "".join(
        f"{'wrong ' if wrong else 'honest'} {name:42} n={len(found):2} share {_range([s for s, _ in found])} "
        f"along {_range([a for _, a in found])}\n"
        for (wrong, name), found in rows
    )
    path.with_suffix(".txt").write_text(text, encoding="utf-8")
    print(text, end="", flush=True)


def _range(found: list[float]) -> str:
    return f"{min(found):.3g} .. {statistics.median(found):.3g} .. {max(found):.3g}"


@contextlib.contextmanager
def _told(path: Path, said: dict[str, Any]) -> Iterator[None]:
    """Write a line for every run and every comparison of a scoring call as soon as there is one."""
    judge: Any = importlib.import_module("environments.optimize_llm_foundry.judge")
    run, compare, began = judge.run, judge.compare, time.monotonic()

    def tell(**found: Any) -> None:
        _write(path, {**said, "at": round(time.monotonic() - began, 1), **found})

    def ran(source: Path, folder: Path, *more: Any, **named: Any) -> Any:
        found = run(source, folder, *more, **named)
        refused = {"not_ran": found.message} if isinstance(found, judge.NotRan) else {}
        tell(run=folder.name, seconds=found.seconds, log=found.log[-1500:], **refused)
        return found

    def compared(*weights: Any, **bounds: Any) -> Any:
        found = compare(*weights, **bounds)
        tell(comparison=found.details(), problem=found.problem())
        return found

    with mock.patch.object(judge, "run", ran), mock.patch.object(judge, "compare", compared):
        yield


def score(arguments: argparse.Namespace) -> None:
    """Score, or only check, the starter or the reference through the real path and write the whole report down."""
    found = registry.find(SLUG)
    spec = msgspec.structs.replace(found.spec, profiles={arguments.profile: _profile(arguments)})
    environment = registry.load(found)
    path = _file(arguments.out, "scores")
    with tempfile.TemporaryDirectory(prefix="foundry-score-") as place:
        home, root, scratch = (Path(place, name) for name in ("home", "root", "scratch"))
        assets.prepare(environment, spec, arguments.profile, PUBLIC_PASSPHRASE, home, quiet)
        folders = assets.folders_for(spec, arguments.profile, home)
        submission = Submission(
            root=root, profile_name=arguments.profile, profile=spec.profile(arguments.profile), assets=folders,
            scratch=scratch, seed=arguments.seed if arguments.seed >= 0 else random.SystemRandom().randrange(2**31),
        )  # fmt: skip
        settings = decode_settings(submission.profile.settings)
        root.mkdir()
        scratch.mkdir()
        for name, source in lines.starter_files(settings).items():
            shutil.copyfile(source, root / name)
        if arguments.solution == "reference":
            unseal(found.folder / "protected" / "reference.sealed", root, PUBLIC_PASSPHRASE)
        said = {"solution": arguments.solution, "profile": arguments.profile, "seed": submission.seed,
                "cards": os.environ.get("CUDA_VISIBLE_DEVICES")}  # fmt: skip
        began = time.monotonic()
        with _told(path, said):
            report: Any = (
                environment.check(submission) if arguments.check else environment.score(submission, _stage)
            )
        _write(path, {**said, "call_seconds": time.monotonic() - began, **msgspec.to_builtins(report)})


def _stage(progress: Progress) -> None:
    print(progress.stage, flush=True)


def _profile(arguments: argparse.Namespace) -> Profile:
    """Return the profile with `--set key=JSON` laid over its settings."""
    whole = registry.find(SLUG).spec.profile(arguments.profile)
    settings = json.loads(json.dumps(whole.settings))
    for change in arguments.set:
        key, _, value = change.partition("=")
        *path, last = key.split(".")
        at = settings
        for part in path:
            at = at.setdefault(part, {})
        at[last] = json.loads(value)
    return msgspec.structs.replace(whole, settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("distances", "score"):
        command = commands.add_parser(name)
        command.add_argument("--profile", default="cpu")
        command.add_argument("--out", type=Path, required=True)
        command.add_argument(
            "--set", action="append", default=[], metavar="KEY=JSON", help="rows.count=200, model.layers=6"
        )
    measuring, scoring = commands.choices["distances"], commands.choices["score"]
    measuring.add_argument("--seeds", default="1")
    measuring.add_argument("--devices", default="cpu", help="cpu, or numbers of cards")
    measuring.add_argument("--processes", type=int, default=1)
    measuring.add_argument(
        "--parts", type=int, default=1, help="into how many tasks a seed's variants are divided"
    )
    measuring.add_argument("--only", default="", help="beginnings of variants' names; script, script:2")
    measuring.add_argument("--quick", action="store_true", help="the run with other options")
    scoring.add_argument("--solution", choices=("start", "reference"), default="reference")
    scoring.add_argument("--check", action="store_true")
    scoring.add_argument("--seed", type=int, default=-1)
    commands.add_parser("table").add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "table":
        table(arguments.out)
    else:
        {"distances": distances, "score": score}[arguments.command](arguments)


if __name__ == "__main__":
    main()
