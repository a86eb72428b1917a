"""Measures what the bounds of optimize_llm_foundry must tell apart, and scores its starter and its sealed reference.

    python benchmarks/optimize_llm_foundry.py distances --profile cpu --seeds 1,2,3,4,5 --processes 2 --out DIR
    python benchmarks/optimize_llm_foundry.py distances --profile gpu --seeds 1 --only script,script:2 --devices 0,1 --out DIR
    python benchmarks/optimize_llm_foundry.py score --profile gpu --solution reference --out DIR
    python benchmarks/optimize_llm_foundry.py table DIR

`distances` trains the reference and variants of it on fresh rows (one draw a seed) and tells how far each result is from
the reference's, as a share of the reference's way from the base model. `script` among the names is the untouched script itself,
outside the sandbox, with the times of its stages; `script:2` runs it on two cards; a name that comes twice is run twice. Every result is one line of JSON at once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from optimize_llm_foundry_laid import SCRIPT, SLUG, Laid, load_reference, quiet
from optimize_llm_foundry_variants import VARIANTS, Variant, train_as

from environments import assets, registry
from environments.contract import Profile, Submission
from environments.optimize_llm_foundry import options as lines
from environments.optimize_llm_foundry.result import read_weights
from environments.optimize_llm_foundry.settings import decode_settings
from environments.sealing import PUBLIC_PASSPHRASE, unseal

_MOST_TOKENS = 16384
"""Of one pass on a card: fixed, so that a run does not depend on what else the card holds."""


def _apart(first: dict[str, Any], second: dict[str, Any]) -> float:
    """Return the sum of the Frobenius norms of the differences."""
    return sum(
        float((first[name].to(tensor.device).double() - tensor.double()).norm())
        for name, tensor in second.items()
    )


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
            moved = _apart({name: base[name] for name in reference}, reference)
            results.put({**said, "name": "reference", "moved": moved, "seconds": took})
            before = None
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
                        more["share_to_script_before"] = _apart(found, before) / moved
                    before = found
                else:
                    variant: Variant = VARIANTS[name]
                    found, honest = train_as(fast, variant, options, device, most), variant.honest
                share = _apart({name: found[name] for name in reference}, reference) / moved
                results.put({**said, "name": name, "honest": honest, "share": share, **more,
                             "seconds": time.monotonic() - began})  # fmt: skip
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
    arguments.out.mkdir(parents=True, exist_ok=True)
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
        with (arguments.out / "distances.jsonl").open("a", encoding="utf-8") as file:
            while working:
                found = results.get()
                if found is None:
                    working -= 1
                    continue
                print(json.dumps(found), flush=True)
                file.write(json.dumps(found) + "\n")
                file.flush()
    table(arguments.out)


def table(folder: Path) -> None:
    """Print the largest and smallest share of every variant, furthest honest and nearest wrong ones beside each other."""
    shares: dict[tuple[bool, str], list[float]] = defaultdict(list)
    for line in (folder / "distances.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if "share" in found:
            shares[not found["honest"], found["name"]].append(found["share"])
    rows = sorted(shares.items(), key=lambda item: (item[0][0], statistics.median(item[1])))
    text = "".join(
        f"{'wrong ' if wrong else 'honest'} {name:42} n={len(found):2} least {min(found):.3g} middle "
        f"{statistics.median(found):.3g} most {max(found):.3g}\n"
        for (wrong, name), found in rows
    )
    (folder / "distances.txt").write_text(text, encoding="utf-8")
    print(text, end="", flush=True)


def score(arguments: argparse.Namespace) -> None:
    """Score, or only check, the starter or the reference through the real path and write the whole report down."""
    found = registry.find(SLUG)
    spec = msgspec.structs.replace(found.spec, profiles={arguments.profile: _profile(arguments)})
    environment = registry.load(found)
    arguments.out.mkdir(parents=True, exist_ok=True)
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
        began = time.monotonic()
        if arguments.check:
            report: Any = environment.check(submission)
        else:
            report = environment.score(
                submission,
                lambda progress: print(progress.stage, round(time.monotonic() - began, 1), flush=True),
            )
        said = {
            "solution": arguments.solution, "profile": arguments.profile, "seed": submission.seed,
            "cards": os.environ.get("CUDA_VISIBLE_DEVICES"), "call_seconds": time.monotonic() - began, **msgspec.to_builtins(report),
        }  # fmt: skip
    with (arguments.out / "scores.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")
    print(json.dumps(said, indent=1), flush=True)


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
