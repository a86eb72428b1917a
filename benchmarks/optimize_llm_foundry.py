"""Measures optimize_llm_foundry: what its bounds must tell apart, its starter, its sealed reference and the known tricks.

    python benchmarks/optimize_llm_foundry.py distances --profile cpu --seeds 1,2,3,4,5 --processes 2 --out DIR
    python benchmarks/optimize_llm_foundry.py distances --profile gpu --seeds 1 --only script,script:2 --devices 0,1 --out DIR
    python benchmarks/optimize_llm_foundry.py score --profile gpu --solution reference --out DIR
    python benchmarks/optimize_llm_foundry.py repeats --profile gpu --solution reference --calls 10 --cards 0 --out DIR
    python benchmarks/optimize_llm_foundry.py cheats --profile gpu --cards 0,1 --beside 4 --out DIR
    python benchmarks/optimize_llm_foundry.py table DIR

`distances` trains the reference and variants of it on fresh rows (one draw a seed) and tells how far each result is from the
reference's, as a share of the reference's way from the base model, and how much further along that way. `script` among the
names is the untouched script itself, outside the sandbox, with the times of its stages; `script:2` runs it on two cards; a
name that comes twice is run twice.

`score` writes a line for every run and every comparison as they come, before the whole report: what a call that is cut has
found out is kept.

`repeats` scores one submission on one draw of rows many times, with all `--cards` in each call. The untouched script's two runs
are made once; with `--stand-in` they are the reference's own, which is much faster and says nothing of the distance.

`cheats` scores the corpus of tests/cheats at a small size (`--set` changes it): each call on `--per-call` of the cards,
`--beside` calls at a time on the same ones. It ends with code 1 where a verdict is not the promised one.

Every result is one line of JSON at once. `--out` is a folder, or a file that ends in .jsonl.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from optimize_llm_foundry_cheats import cheats
from optimize_llm_foundry_distances import distances, table
from optimize_llm_foundry_scores import repeats, score


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("distances", "score", "repeats", "cheats"):
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
    repeating, trying = commands.choices["repeats"], commands.choices["cheats"]
    for command in (scoring, repeating):
        command.add_argument("--solution", choices=("start", "reference"), default="reference")
    scoring.add_argument("--check", action="store_true")
    scoring.add_argument("--seed", type=int, default=-1)
    for command in (repeating, trying):
        command.add_argument("--cards", default="0", help="numbers of cards, or cpu")
        command.add_argument("--seed", type=int, default=7)
    repeating.add_argument("--calls", type=int, default=10)
    repeating.add_argument("--seconds", type=float, default=math.inf, help="begin no call after that")
    repeating.add_argument(
        "--stand-in", action="store_true", help="the reference in the untouched script's place"
    )
    trying.add_argument("--per-call", type=int, default=1, help="cards that one call uses")
    trying.add_argument("--beside", type=int, default=1, help="calls at a time on the same cards")
    trying.add_argument("--only", default="", help="names of submissions, untouched, honest_reference")
    commands.add_parser("table").add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "table":
        table(arguments.out)
    elif arguments.command == "cheats":
        raise SystemExit(0 if cheats(arguments) else 1)
    else:
        {"distances": distances, "score": score, "repeats": repeats}[arguments.command](arguments)


if __name__ == "__main__":
    main()
