"""Scores the starter or the sealed reference of optimize_llm_foundry through the real judge, once or many times."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from optimize_llm_foundry_laid import file_of, profile_of, write_line
from optimize_llm_foundry_sandboxed import REFERENCE, Ground, RememberedStarter

from environments.contract import Progress


@contextlib.contextmanager
def _told(path: Path, said: dict[str, Any]) -> Iterator[None]:
    """Write a line for every run and every comparison of a scoring call as soon as there is one."""
    judge: Any = importlib.import_module("environments.optimize_llm_foundry.judge")
    run, compare, began = judge.run, judge.compare, time.monotonic()

    def tell(**found: Any) -> None:
        write_line(path, {**said, "at": round(time.monotonic() - began, 1), **found})

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
    path = file_of(arguments.out, "scores")
    with tempfile.TemporaryDirectory(prefix="foundry-score-") as place:
        ground = Ground(Path(place, "home"), arguments.profile, profile_of(arguments))
        ground.prepare()
        seed = arguments.seed if arguments.seed >= 0 else random.SystemRandom().randrange(2**31)
        submission = ground.submission(Path(place), seed, _solution(arguments))
        said = {"solution": arguments.solution, "profile": arguments.profile, "seed": seed,
                "cards": os.environ.get("CUDA_VISIBLE_DEVICES")}  # fmt: skip
        began = time.monotonic()
        with _told(path, said):
            report: Any = (
                ground.environment.check(submission)
                if arguments.check
                else ground.environment.score(submission, _stage)
            )
        write_line(path, {**said, "call_seconds": time.monotonic() - began, **msgspec.to_builtins(report)})


def repeats(arguments: argparse.Namespace) -> None:
    """Score one submission on one draw of rows again and again; the untouched script's two runs are made once."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "" if arguments.cards == "cpu" else arguments.cards
    path, seed = file_of(arguments.out, "repeats"), max(arguments.seed, 0)
    said = {"solution": arguments.solution, "profile": arguments.profile, "seed": seed, "cards": arguments.cards,
            "stand_in": arguments.stand_in}  # fmt: skip
    whose = (
        "the sealed reference's, standing in for the untouched script's,"
        if arguments.stand_in
        else "the untouched script's"
    )
    print(
        f"two runs, {whose} are made once and remembered: no drift, one draw of rows in all calls", flush=True
    )
    began, seconds = time.monotonic(), list[float]()
    with tempfile.TemporaryDirectory(prefix="foundry-repeats-") as place:
        profile, home = profile_of(arguments), Path(place, "home")
        plain = Ground(home, arguments.profile, profile)
        plain.prepare()
        other = (
            plain.submission(Path(place, "stand-in"), seed, REFERENCE).root if arguments.stand_in else None
        )
        starter = RememberedStarter(Path(place, "remembered"), other)
        ground = Ground(home, arguments.profile, profile, starter)
        for number in range(arguments.calls):
            if time.monotonic() - began > arguments.seconds:
                print(f"stopped before call {number + 1}: {arguments.seconds:.0f} s are over", flush=True)
                break
            folder, at = Path(place, f"call-{number}"), time.monotonic()
            report = ground.environment.score(ground.submission(folder, seed, _solution(arguments)), _stage)
            found = msgspec.to_builtins(report)
            if "seconds" in report.details:
                seconds.append(float(report.details["seconds"]))
            write_line(path, {**said, "call": number, "call_seconds": time.monotonic() - at, **found})
            shutil.rmtree(folder)
        print(f"the remembered runs took {', '.join(f'{s:.1f}' for s in starter.runs())} s", flush=True)
    summary = _spread(seconds)
    print(summary, flush=True)
    write_line(path, {**said, "summary": summary, "seconds": seconds}, show=False)


def _spread(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return f"{len(seconds)} scores: no spread"
    logarithms = [math.log(s) for s in seconds]
    return (
        f"{len(seconds)} scores: {min(seconds):.2f} .. {statistics.median(seconds):.2f} .. {max(seconds):.2f} s; "
        f"ln(seconds) {statistics.mean(logarithms):.4f}, standard deviation {statistics.stdev(logarithms):.4f}"
    )


def _solution(arguments: argparse.Namespace) -> Path | None:
    return REFERENCE if arguments.solution == "reference" else None


def _stage(progress: Progress) -> None:
    print(progress.stage, flush=True)
