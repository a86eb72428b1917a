"""An environment prepared on this machine, for the benchmarks that measure what its scores are worth, and what they write."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from environments import assets, calls, registry
from environments.calibrate import Workshop
from environments.contract import AssetFolders, ScoreReport
from environments.invoke import Action
from environments.machine.home import home_folder
from environments.reference import lay_out_reference
from environments.sealing import passphrase_from
from workbench.preflight.hardware import hardware_here

T = TypeVar("T")
_QUEUE_SECONDS = 120.0


class Results:
    """Lines of JSON: each is shown and, with a file, appended to it at once."""

    def __init__(self, out: Path | None, **said: Any) -> None:
        self._out, self._said, self._began = out, said, time.monotonic()
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)

    def write(self, what: str, **found: Any) -> None:
        at = round(time.monotonic() - self._began, 1)
        line = json.dumps({"what": what, **self._said, **found, "at": at})
        print(line, flush=True)
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def add_common(command: argparse.ArgumentParser) -> None:
    """Add the options that every measurement has."""
    command.add_argument("--profile", choices=("cpu", "gpu"), default="cpu")
    command.add_argument("--threads", type=int, help="on the processor; the profile's number if left out")
    command.add_argument("--out", type=Path, metavar="FILE", help="append the lines to it as they come")


def add_rows(command: argparse.ArgumentParser) -> None:
    command.add_argument("--rows", type=int, help="protected rows to score; the profile's number if left out")


def listed(kind: Callable[[str], T]) -> Callable[[str], list[T]]:
    """Return an option's type for values with commas between them."""

    def values(text: str) -> list[T]:
        return [kind(part) for part in text.split(",")]

    return values


def open_workshop(slug: str, profile_name: str) -> Workshop:
    """Return the environment as prepared below `REBENCH_HOME`, with the operator's key from the process's variables.

    Raises:
        AssetsMissing: `env prepare` has not been run, or what it made was changed; says what to run.
        SealBroken: the key file cannot be read.
    """
    workshop = Workshop(registry.find(slug), profile_name, home_folder(), passphrase_from(os.environ))
    assets.verify(folders_of(workshop))
    return workshop


def folders_of(workshop: Workshop) -> AssetFolders:
    return assets.folders_for(workshop.found.spec, workshop.profile_name, workshop.home)


def results_of(arguments: argparse.Namespace, workshop: Workshop) -> Results:
    """Return where the lines go, with a first one that says what they were measured on."""
    import torch

    results = Results(arguments.out, profile=arguments.profile)
    results.write(
        "set-up", environment=workshop.found.spec.slug, version=workshop.found.spec.version, command=arguments.command,
        hardware=hardware_here(workshop.profile), torch=torch.__version__, threads=threads_of(arguments, workshop),
    )  # fmt: skip
    return results


def threads_of(arguments: argparse.Namespace, workshop: Workshop) -> int:
    given: int | None = arguments.threads
    return workshop.profile.needs.cpus if given is None else given


def lay_out(workshop: Workshop, tree: Path, *, reference: bool = False) -> Path:
    """Lay out the starter in `tree`, or the sealed reference over it; a recipe's result is made once and kept."""
    sources = calls.call(workshop.request(Action.STARTER), quiet)["starter"]
    for name, source in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tree / name)
    if reference:
        lay_out_reference(
            workshop.found, workshop.profile_name, tree, workshop.home, workshop.passphrase, quiet
        )
    return tree


def score(workshop: Workshop, tree: Path) -> ScoreReport:
    """Score a work tree as `rebench-workbench score` does, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="rebench-bench-") as scratch:
        request = workshop.request(Action.SCORE, tree, Path(scratch))
        return calls.score(request, quiet, workshop.profile.limits.score_seconds + _QUEUE_SECONDS)


def peak_gb(device: str) -> float | None:
    """Return the most memory of the card that was in use since this was last asked."""
    import torch

    if torch.device(device).type != "cuda":
        return None
    found = torch.cuda.max_memory_allocated() / 1e9
    torch.cuda.reset_peak_memory_stats()
    return found


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""
