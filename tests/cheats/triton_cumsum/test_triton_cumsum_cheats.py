"""Every trick known against a kernel's timing gets the verdict its first line promises; honest submissions pass."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from environments.worker import confine
from environments.worker.jobs import Level
from tests.cheats.triton_cumsum.small import DEVICE, HOST, Small, promised, submissions

HERE = Path(__file__).parent
ON_HOST = submissions(HERE / "submissions")
ON_DEVICE = submissions(HERE / "submissions_gpu")

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.skipif(
        confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT),
        reason="needs bubblewrap: these verdicts are promised for a sandboxed worker",
    ),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"), "cpu", HOST)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"), "gpu", DEVICE)


def judge(small: Small, cheat: Path, folder: Path) -> None:
    began = time.perf_counter()
    score = small.score(cheat, folder / "1")
    if score.status.value not in promised(cheat):
        # On a busy machine a race may be won by luck, at no gain; a trick that works, works every time.
        score = small.score(cheat, folder / "2")
    log = str(score.details.get("log", ""))
    assert score.status.value in promised(cheat), (score.message, log)
    assert "GOT" not in log, log
    assert score.details.get("confinement", {}).get("survivors", 0) == 0
    if cheat.stem == "patched_clock":
        assert score.details["milliseconds"]["calls"]["least"] >= 25, "the scorer's own clock was moved"
    assert time.perf_counter() >= began


@pytest.mark.parametrize("cheat", ON_HOST, ids=lambda path: path.stem)
def test_a_trick_on_the_host_gets_the_verdict_it_deserves(cheat: Path, host: Small, tmp_path: Path) -> None:
    judge(host, cheat, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", ON_DEVICE, ids=lambda path: path.stem)
def test_a_trick_on_the_device_gets_the_verdict_it_deserves(
    cheat: Path, device: Small, tmp_path: Path
) -> None:
    judge(device, cheat, tmp_path)


@pytest.mark.parametrize("cheat", [*ON_HOST, *ON_DEVICE], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_submission_says_what_it_tries_where_it_was_seen_and_what_it_gets(cheat: Path) -> None:
    assert set(promised(cheat)) <= {"valid", "invalid", "crashed", "timeout"}
