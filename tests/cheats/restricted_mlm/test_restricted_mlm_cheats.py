"""Every trick gets the verdict that its first line promises, with operator and line; honest submissions pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.contract import AssetFolders, ScoreStatus
from environments.worker import Level, confine
from tests.cheats.restricted_mlm import small

HERE = Path(__file__).parent
TRICKS = sorted((HERE / "submissions").glob("*.py"))
HONEST = sorted((HERE / "submissions" / "honest").glob("*.py"))

IN_WORKER = sorted((HERE / "submissions" / "in_worker").glob("*.py"))

ON_A_CARD = [
    path
    for path in TRICKS
    if path.stem.startswith(("rounding", "rows", "neighbour", "index", "memorised", "not_finite", "half"))
]
"""Tricks whose verdict comes from numbers, which a card computes in its own way."""

pytestmark = pytest.mark.cheats


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> AssetFolders:
    return small.small_assets(tmp_path_factory.mktemp("assets"))


@pytest.mark.parametrize("trick", TRICKS, ids=lambda path: path.stem)
def test_a_trick_gets_the_verdict_it_promises(
    trick: Path, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    status, _, words = small.promised(trick).partition(", ")
    score = small.score(small.submission(trick, tmp_path, assets))
    assert score.status.value == status, score.message
    if status == "invalid":
        assert words in score.message
    if (line := small.offending_line(trick)) is not None:
        assert score.message.startswith(f"model.py:{line}: "), score.message


@pytest.mark.parametrize("honest", HONEST, ids=lambda path: path.stem)
def test_an_honest_submission_passes(
    honest: Path, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    given = small.submission(honest, tmp_path, assets)
    assert small.check(given).problems == ()
    score = small.score(given)
    assert score.status is ScoreStatus.VALID, score.message
    assert 3.0 < score.details["loss"] < 40.0
    assert score.details["flags"] == []


@pytest.mark.gpu
@pytest.mark.parametrize("trick", ON_A_CARD, ids=lambda path: path.stem)
def test_a_trick_gets_the_same_verdict_on_a_card(
    trick: Path, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    status, _, words = small.promised(trick).partition(", ")
    score = small.score(small.submission(trick, tmp_path, assets, device="cuda"))
    assert score.status.value == status, score.message
    if status == "invalid":
        assert words in score.message


@pytest.mark.gpu
@pytest.mark.parametrize("honest", HONEST, ids=lambda path: path.stem)
def test_an_honest_submission_passes_on_a_card(
    honest: Path, assets: AssetFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.without_worker(monkeypatch)
    score = small.score(small.submission(honest, tmp_path, assets, device="cuda"))
    assert score.status is ScoreStatus.VALID, score.message


@pytest.mark.skipif(
    confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT),
    reason="needs bubblewrap: these verdicts are promised for a sandboxed worker",
)
@pytest.mark.parametrize("trick", IN_WORKER, ids=lambda path: path.stem)
def test_a_trick_on_the_worker_gets_the_verdict_it_promises(
    trick: Path, assets: AssetFolders, tmp_path: Path
) -> None:
    status, _, words = small.promised(trick).partition(", ")
    score = small.score(small.submission(trick, tmp_path, assets, capture_seconds=20))
    assert score.status.value == status, score.message
    assert words.strip() in score.message
    assert "GOT" not in score.message
    if (line := small.offending_line(trick)) is not None:
        assert score.message.startswith(f"model.py:{line}: "), score.message
    assert not Path("/tmp/rebench-pickle-ran").exists()
