"""Measures restricted_mlm: what hidden positions and rounding do to a score, and how the starter's own training moves it.

    rebench-workbench env prepare restricted_mlm --profile cpu
    python benchmarks/restricted_mlm.py positions --profile cpu --seeds 11,12,13,14,15,16 --out results.jsonl
    python benchmarks/restricted_mlm.py rounding --profile cpu --out results.jsonl
    python benchmarks/restricted_mlm.py training --profile gpu --seconds 5,60 --out results.jsonl

`positions` scores starting and reference solution with the profile's own hidden positions, twice, and with other seeds of them, and
gives the standard deviation of the raw score over those.

`rounding` computes one batch together, each row alone, and in shaken arithmetic, as the scorer's probes do, in float32 and
bfloat16: how far the losses move on average, with their sign and without, beside what the scorer allows.

`training` continues the starter's own training script for about that many seconds (a short run tells how many tokens that is) and
scores the result as a participant's submission.

A profile whose reference is made by a recipe makes it once, in minutes. Every result is one line of JSON at once.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from prepared import (
    Results,
    add_common,
    add_rows,
    folders_of,
    lay_out,
    listed,
    open_workshop,
    peak_gb,
    quiet,
    results_of,
    score,
    threads_of,
)
from torch import Tensor

from environments.calibrate import Workshop
from environments.contract import EnvironmentFault, Submission
from environments.kit.tokens import read_tokens
from environments.restricted_mlm import evaluate
from environments.restricted_mlm.capture_job import NotCaptured, capture_submission, describe
from environments.restricted_mlm.device import DeviceFailed, ready_device
from environments.restricted_mlm.evaluate import EvaluationRefused, MaskedRows
from environments.restricted_mlm.graph import Graph
from environments.restricted_mlm.interpret import NodeFailed
from environments.restricted_mlm.settings import KEYS, decode_settings

SLUG = "restricted_mlm"
SOLUTIONS = ("start", "reference")
PROBE_TOKENS = {"cpu": 100_000, "gpu": 2_000_000}
TOLD = ("loss", "standard_error", "control_loss", "train_loss", "seconds", "capture_seconds", "flags")


class MeasurementFailed(EnvironmentFault):
    """A solution of our own could not be captured or trained."""


class Bench:
    """The scorer of one prepared profile, step by step, and the lines about it."""

    def __init__(self, workshop: Workshop, results: Results, threads: int) -> None:
        self.workshop, self.results, self.threads = workshop, results, threads
        self.settings = decode_settings(workshop.profile.settings)
        self.folders = folders_of(workshop)
        self.device = torch.device(self.settings.device)
        self.tokens = read_tokens(self.folders.protected / "scoring.npy")
        self.own_seed = KEYS.read(self.folders.protected).mask_seed

    def capture(self, name: str) -> tuple[Graph, dict[str, Tensor]]:
        """Return the graph and the placed weights of the starting or the reference solution; readies the device.

        That changes the process's variables, which the training script must not inherit.
        """
        ready_device(self.settings.device, self.workshop.profile_name)
        with tempfile.TemporaryDirectory(prefix="mlm-bench-") as place:
            tree, scratch = Path(place, "tree"), Path(place, "scratch")
            scratch.mkdir()
            submission = Submission(
                root=lay_out(self.workshop, tree, reference=name == "reference"),
                profile_name=self.workshop.profile_name, profile=self.workshop.profile, assets=self.folders,
                scratch=scratch, seed=1,
            )  # fmt: skip
            found = capture_submission(submission, self.settings, self.settings.capture_seconds, quiet)
        if isinstance(found, NotCaptured):
            raise MeasurementFailed(f"the {name} solution: {describe(found.problem)}\n{found.log[-2000:]}")
        return found.graph, {key: tensor.to(self.device) for key, tensor in found.weights.items()}

    def draw(self, seed: int, rows: int) -> MaskedRows:
        s = self.settings
        return evaluate.draw_rows(
            self.tokens, rows, s.length, mask_token=s.mask_token, mask_share=s.mask_share, seed=seed
        )

    def positions(self, name: str, seeds: list[int], wanted: int | None) -> None:
        """Score one solution with its own hidden positions, twice, and with those of `seeds`."""
        graph, weights = self.capture(name)
        own, others = list[float](), list[float]()
        count = self.settings.scoring_rows if wanted is None else wanted
        workers = self.threads if self.device.type == "cpu" else 1
        for seed in (None, None, *seeds):
            rows = self.draw(self.own_seed if seed is None else seed, count)
            loss = evaluate.masked_loss(graph, weights, rows, self.settings.batch, workers=workers)
            raw = math.log(loss.mean - self.settings.log_constant)
            (own if seed is None else others).append(raw)
            self.results.write(
                "positions", name=name, seed="own" if seed is None else seed, loss=loss.mean, raw=raw, seconds=loss.seconds,
                standard_error=loss.standard_error, tokens=loss.tokens, peak_gb=peak_gb(self.device.type),
            )  # fmt: skip
        self.results.write(
            "spread", name=name, seeds=len(others), same_to_the_last_bit=own[0] == own[1],
            raw_deviation=statistics.stdev(others) if len(others) > 1 else None,
        )  # fmt: skip

    def rounding(self, name: str) -> None:
        """Compare one batch's losses with those of its rows alone and in shaken arithmetic."""
        graph, weights = self.capture(name)
        torch.set_num_threads(1)  # as the scorer, which gives each batch one thread
        crowd = self.draw(self.own_seed, self.settings.batch)
        for kind in (torch.float32, torch.bfloat16):
            cast = {key: w.to(kind) if w.is_floating_point() else w for key, w in weights.items()}
            said = {"name": name, "type": str(kind).removeprefix("torch.")}
            began = time.monotonic()
            try:
                together = self._losses(graph, cast, crowd)
                alone = torch.cat([self._losses(graph, cast, row) for row in _rows(crowd)])
                shaken = self._losses(graph, cast, crowd, shake_seed=1)
            except (NodeFailed, EvaluationRefused, DeviceFailed) as error:
                self.results.write("rounding", **said, error=f"{type(error).__name__}: {error}"[:500])
                continue
            self.results.write(
                "rounding", **said, tokens=len(together), alone=_moved(alone, together), shaken=_moved(shaken, together),
                allowed={"mean": evaluate.LARGEST_SHIFT, "absolute": evaluate.LARGEST_NOISE},
                seconds=time.monotonic() - began, peak_gb=peak_gb(self.device.type),
            )  # fmt: skip

    @staticmethod
    def _losses(
        graph: Graph, weights: dict[str, Tensor], rows: MaskedRows, shake_seed: int | None = None
    ) -> Tensor:
        """Return each hidden token's loss as the scorer's own probes compute it."""
        return evaluate._hidden_losses(graph, weights, rows, math.inf, shake_seed=shake_seed)  # noqa: SLF001

    def training(self, seconds: list[float], probe_tokens: int) -> None:
        """Score the starter untouched, and after its own training went on for each of `seconds`."""
        with tempfile.TemporaryDirectory(prefix="mlm-bench-") as place:
            start = lay_out(self.workshop, Path(place, "start"))
            self._score(start, "starter untouched")
            rate = self._train(shutil.copytree(start, Path(place, "probe")), probe_tokens)
            for wanted in seconds:
                tree = shutil.copytree(start, Path(place, f"trained-{wanted:g}"))
                tokens, began = max(1, round(rate * wanted)), time.monotonic()
                pace = self._train(tree, tokens)
                self._score(
                    tree, "starter continued", seconds_wanted=wanted, script_seconds=time.monotonic() - began,
                    tokens_trained=tokens, tokens_per_second=pace, tokens_per_second_short=rate,
                )  # fmt: skip

    def _train(self, tree: Path, tokens: int) -> int:
        """Run the starter's training script in `tree` and return its tokens a second."""
        command = [
            sys.executable, "train.py", "--tokens", str(tokens), "--seed", "2", "--device", self.device.type
        ]  # fmt: skip
        variables = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)
        rates = re.findall(r"([\d,]+) tokens/s", done.stdout)
        if done.returncode or not rates:
            raise MeasurementFailed(
                f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
            )
        return int(rates[-1].replace(",", ""))

    def _score(self, tree: Path, what: str, **more: object) -> None:
        began = time.monotonic()
        report = score(self.workshop, tree)
        self.results.write(
            what, status=report.status.value, raw=report.raw, message=report.message, wall=time.monotonic() - began,
            **{key: report.details.get(key) for key in TOLD}, **more,
        )  # fmt: skip


def _rows(crowd: MaskedRows) -> list[MaskedRows]:
    """Return the rows of a batch, each alone."""
    parts = [slice(i, i + 1) for i in range(len(crowd.ids))]
    return [MaskedRows(crowd.ids[part], crowd.targets[part], crowd.hidden[part]) for part in parts]


def _moved(losses: Tensor, before: Tensor) -> dict[str, float]:
    moved = losses - before
    return {"mean": float(moved.mean()), "absolute": float(moved.abs().mean())}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("positions", "rounding", "training"):
        add_common(commands.add_parser(name))
    for name in ("positions", "rounding"):
        commands.choices[name].add_argument(
            "--solutions", type=listed(str), default=list(SOLUTIONS), help="start, reference"
        )
    positions = commands.choices["positions"]
    add_rows(positions)
    positions.add_argument(
        "--seeds", type=listed(int), default=[11, 12, 13, 14, 15, 16], help="of hidden positions"
    )
    training = commands.choices["training"]
    training.add_argument(
        "--seconds", type=listed(float), default=[5.0, 60.0], help="how long to train on, each from the start"
    )
    training.add_argument("--probe-tokens", type=int, help="of the short run that tells the speed")
    arguments = parser.parse_args()
    if unknown := set(getattr(arguments, "solutions", ())) - set(SOLUTIONS):
        parser.error(f"--solutions: {', '.join(sorted(unknown))} is none of {', '.join(SOLUTIONS)}")
    return arguments


def main() -> None:
    arguments = parse()
    try:
        workshop = open_workshop(SLUG, arguments.profile)
        bench = Bench(workshop, results_of(arguments, workshop), threads_of(arguments, workshop))
        if arguments.command == "training":
            probe = arguments.probe_tokens or PROBE_TOKENS[arguments.profile]
            bench.training(arguments.seconds, probe)
            return
        for name in arguments.solutions:
            if arguments.command == "positions":
                bench.positions(name, arguments.seeds, arguments.rows)
            else:
                bench.rounding(name)
    except (EnvironmentFault, OSError) as error:
        sys.exit(f"restricted_mlm.py: {error}")


if __name__ == "__main__":
    main()
