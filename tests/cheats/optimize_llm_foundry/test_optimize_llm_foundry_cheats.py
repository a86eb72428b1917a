"""Every trick known against timed training gets the verdict its first line promises; honest submissions pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.worker import confine
from environments.worker.jobs import Level
from tests.cheats.optimize_llm_foundry.small import Small, promised, submissions

HERE = Path(__file__).parent
ALL = submissions(HERE / "submissions")
WITHOUT_TRAINING = {
    "a_pipe_for_a_file", "another_network", "code_in_the_config", "copies_the_base", "endless_result", "fails",
    "finishes_in_the_background", "half_written", "leaves_nothing", "links_a_file", "links_the_base", "moves_the_base",
    "not_finite", "pickled_weights", "searches_for_the_reference", "shares_an_inode", "swaps_the_result_later",
}  # fmt: skip
"""Refused without a training run of their own, so these are quick."""

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT),
        reason="needs bubblewrap: these verdicts are promised for a sandboxed worker",
    ),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"))


def judge(small: Small, cheat: Path, folder: Path) -> None:
    score = small.score(cheat, folder)
    log = str(score.details.get("log", ""))
    assert score.status.value == promised(cheat), (score.message, log)
    assert "GOT" not in log, log
    assert score.details.get("confinement", {}).get("survivors", 0) == 0


@pytest.mark.parametrize("cheat", [c for c in ALL if c.name in WITHOUT_TRAINING], ids=lambda path: path.name)
def test_a_trick_without_training_is_refused(cheat: Path, small: Small, tmp_path: Path) -> None:
    judge(small, cheat, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cheat", [c for c in ALL if c.name not in WITHOUT_TRAINING], ids=lambda path: path.name
)
def test_a_submission_that_trains_gets_the_verdict_it_deserves(
    cheat: Path, small: Small, tmp_path: Path
) -> None:
    judge(small, cheat, tmp_path)


def test_every_submission_says_what_it_tries_and_what_it_must_get() -> None:
    assert {promised(cheat) for cheat in ALL} == {"valid", "invalid", "crashed", "timeout"}
