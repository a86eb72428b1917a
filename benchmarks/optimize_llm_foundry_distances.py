"""Trains the reference and variants of it on the same rows and tells how far apart the results are."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from optimize_llm_foundry_laid import SCRIPT, SLUG, Laid, file_of, load_reference, profile_of, write_line
from optimize_llm_foundry_variants import VARIANTS, Variant, train_as

from environments import registry
from environments.optimize_llm_foundry.result import read_weights
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
    profile = profile_of(arguments)
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
            write_line(file_of(arguments.out, "distances"), found)
    table(arguments.out)


def table(out: Path) -> None:
    """Print shares and parts along the way of every variant, furthest honest and nearest wrong ones beside each other."""
    path = file_of(out, "distances")
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
