"""Scores every known trick and the honest submissions of optimize_llm_foundry through the real judge, several at a time.

Everything is real but the size: sandbox, the starter's own training (FSDP through torchrun on cards), precision, both runs. The
untouched script's two runs are made once for all submissions, so drift does not show. No trick is left out on cards: each acts
on files, or on lines of train.py, that both starters have in the same places; `one.py` is another one there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimize_llm_foundry_laid import file_of, load_module, profile_of, quiet, write_line
from optimize_llm_foundry_sandboxed import CORPUS, REFERENCE, Ground, RememberedStarter

from environments.contract import Profile
from environments.worker import confine

SMALLER: dict[str, Any] = {
    "model.layers": 2, "rows": {"count": 64, "shortest": 60, "longest": 700},
    "quick_rows": {"count": 16, "shortest": 60, "longest": 500},
    "options.max_length": 128, "options.batch_size": 8, "options.warmup_steps": 2, "options.microbatch_size": 4,
    "limit_seconds": 75.0, "quick_share": 0.9, "most_drift": 1000.0,
}  # fmt: skip
_SLOW_FIRST = (
    "never_ends",
    "honest",
    "untouched",
    "one_step",
    "skips",
    "ignores",
    "stored",
    "changes",
    "reuses",
)


@dataclass(frozen=True)
class Known:
    """A submission and what it must get."""

    name: str
    overlay: Path | None
    promised: str


@dataclass(frozen=True)
class Seat:
    """What a scoring process needs to open the prepared environment."""

    place: Path
    profile_name: str
    profile: Profile
    seed: int

    def ground(self) -> Ground:
        return Ground(self.place / "home", self.profile_name, self.profile, self.starter())

    def starter(self) -> RememberedStarter:
        return RememberedStarter(self.place / "remembered")


def cheats(arguments: argparse.Namespace) -> bool:
    """Score the corpus; every line is written as it comes. Return whether all verdicts are as promised."""
    path, began = file_of(arguments.out, "cheats"), time.monotonic()
    seats = _cards(arguments) * arguments.beside
    corpus = [known for known in _corpus() if not arguments.only or known.name in arguments.only.split(",")]
    print(
        f"{len(corpus)} submissions, profile {arguments.profile}, {confine.best_level().value}, {len(seats)} at a time on "
        f"cards {sorted(set(seats))}; the untouched script runs once a job for all of them, so drift is not looked at",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="foundry-cheats-") as place:
        seat = Seat(Path(place), arguments.profile, profile_of(arguments, SMALLER), arguments.seed)
        seat.ground().prepare()
        wrong = [
            found["name"]
            for found in _score_all(seat, seats, corpus)
            if not _tell(path, {**found, "profile": arguments.profile, "cards": arguments.cards})
        ]
        runs = seat.starter().runs()
    print(
        f"{len(corpus) - len(wrong)} of {len(corpus)} as promised in {time.monotonic() - began:.0f} s; runs of the untouched "
        f"script: {', '.join(f'{seconds:.1f}' for seconds in runs)} s"
        + "".join(f"\nWRONG {name}" for name in wrong),
        flush=True,
    )
    return not wrong


def _cards(arguments: argparse.Namespace) -> list[str]:
    """Return the cards of one call, for as many calls as there are cards for."""
    if arguments.cards == "cpu":
        return [""]
    cards, each = arguments.cards.split(","), arguments.per_call
    if len(cards) % each:
        raise SystemExit(f"--cards {arguments.cards} cannot be divided into calls of {each} cards each")
    return [",".join(cards[at : at + each]) for at in range(0, len(cards), each)]


def _corpus() -> list[Known]:
    """Return the corpus, the untouched script and the reference, what takes longest first."""
    small = load_module(CORPUS / "small.py")
    cheats = small.submissions(CORPUS / "submissions")
    found = [Known(cheat.name, cheat, small.promised(cheat)) for cheat in cheats]
    found += [Known("untouched", None, "valid"), Known("honest_reference", REFERENCE, "valid")]
    return sorted(
        found,
        key=lambda known: next((n for n, p in enumerate(_SLOW_FIRST) if known.name.startswith(p)), 99),
    )


def _score_all(seat: Seat, seats: list[str], corpus: list[Known]) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    cards = context.Queue()
    for card in seats:
        cards.put(card)
    with ProcessPoolExecutor(len(seats), context, _take_seat, (cards,)) as pool:
        waiting = {pool.submit(_score_one, seat, known): known for known in corpus}
        for done in as_completed(waiting):
            known = waiting[done]
            try:
                yield done.result()
            except Exception as error:  # noqa: BLE001  (one broken call must not cost the others their line)
                yield {"name": known.name, "promised": known.promised, "verdict": "no answer", "right": False,
                       "message": f"{type(error).__name__}: {error}"[:2000]}  # fmt: skip


def _take_seat(cards: Any) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = cards.get()


def _score_one(seat: Seat, known: Known) -> dict[str, Any]:
    said = {"name": known.name, "promised": known.promised, "used": os.environ["CUDA_VISIBLE_DEVICES"]}
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"{known.name}-", dir=seat.place))
    try:
        ground = seat.ground()
        report = ground.environment.score(ground.submission(folder, seat.seed, known.overlay), quiet)
    except Exception:  # noqa: BLE001  (its text is the finding)
        return {**said, "verdict": "fault of ours", "right": False, "message": traceback.format_exc()[-3000:],
                "call_seconds": round(time.monotonic() - began, 1)}  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    details = dict(report.details)
    log = str(details.pop("log", ""))
    confined = details.get("confinement", {})
    clean = "GOT" not in log and not confined.get("survivors") and not confined.get("gpu_survivors")
    right = clean and report.status.value == known.promised
    return {**said, "verdict": report.status.value, "right": right, "message": report.message,
            "call_seconds": round(time.monotonic() - began, 1), "details": details,
            **({} if right else {"log": log[-3000:]})}  # fmt: skip


def _tell(path: Path, found: dict[str, Any]) -> bool:
    """Write the line down and show it; return whether the verdict is the promised one."""
    write_line(path, found, show=False)
    right = bool(found["right"])
    ran = found.get("details", {}).get("seconds")
    print(
        f"{'ok   ' if right else 'WRONG'} {found['name']:28} promised {found['promised']:8} got {found['verdict']:14} "
        f"{found.get('call_seconds', 0):6.1f} s"
        + (f" (script {ran:.1f} s)" if ran else "")
        + f"  {found['message'][:160]!r}",
        flush=True,
    )
    if not right:
        print(f"      {found.get('log', '')[-800:]}", flush=True)
    return right
