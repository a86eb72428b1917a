"""A process that wakes itself between two calls gains nothing under the kernel's freezer and is refused under SIGSTOP."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.contract import ScoreStatus
from environments.worker import confine
from environments.worker.control import ControlGroup
from environments.worker.jobs import Level
from tests.cheats.triton_cumsum.small import HOST, Small

CHEAT = Path(__file__).parent / "submissions" / "wakes_while_frozen.py"

pytestmark = [
    pytest.mark.cheats,
    pytest.mark.skipif(
        confine.best_level() not in (Level.SANDBOX, Level.SANDBOX_ACCOUNT), reason="needs bubblewrap"
    ),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"), "cpu", HOST)


def test_a_process_that_wakes_itself_between_two_calls_is_refused_where_it_can(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ControlGroup, "freeze", lambda self, seconds: False)
    scores = (
        small.score(CHEAT, tmp_path / str(attempt)) for attempt in range(6)
    )  # a stop may cost it its timer
    refused = next((score for score in scores if score.status is ScoreStatus.INVALID), None)
    assert refused is not None
    assert "woke itself" in refused.message


def test_a_process_that_wakes_itself_between_two_calls_gains_nothing_where_it_cannot(
    small: Small, tmp_path: Path
) -> None:
    score = small.score(CHEAT, tmp_path / "1")
    if score.status is ScoreStatus.INVALID:
        assert "woke itself" in score.message  # no freezer here
        return
    assert score.status is ScoreStatus.VALID, score.message
    times = score.details["milliseconds"]
    assert times["quiet"] > 4 * times["quiet_copy"], "it had its answer before the call"
