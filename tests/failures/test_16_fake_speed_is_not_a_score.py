"""gpu-mode/reference-kernels 162, 104: first places at 0.000 ms, by patched timers, replayed results and lazy outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.contract import ScoreStatus
from tests.cheats.triton_cumsum.small import HOST, Small

CORPUS = Path(__file__).parents[1] / "cheats" / "triton_cumsum" / "submissions"

pytestmark = pytest.mark.failures


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("store"), "cpu", HOST)


@pytest.mark.parametrize(
    "trick", ["cached_by_length", "cached_by_pointer", "previous_output", "lazy_array", "work_after_return"]
)
def test_a_replayed_lazy_or_later_result_has_no_score(trick: str, small: Small, tmp_path: Path) -> None:
    score = small.score(CORPUS / f"{trick}.py", tmp_path)
    assert score.status is ScoreStatus.INVALID, score.message
    assert score.raw is None


def test_patched_timers_change_nothing(small: Small, tmp_path: Path) -> None:
    score = small.score(CORPUS / "patched_clock.py", tmp_path)
    assert score.status is ScoreStatus.VALID, score.message
    times = score.details["milliseconds"]
    assert times["calls"]["least"] >= 25, "it sleeps 30 ms in every call"
    assert times.get("said", {"median": 0})["median"] < 25, "its own clock stands still"


@pytest.mark.serial
def test_an_honest_kernel_gets_its_own_time(small: Small, tmp_path: Path) -> None:
    apart = []
    for attempt in range(6):  # other work only ever adds to the one or the other
        score = small.score(CORPUS / "honest_out.py", tmp_path / str(attempt), seed=attempt)
        times = score.details["milliseconds"]
        # Its own process measures the same calls from inside; the least disturbed of each are compared.
        ours, theirs = times["calls"]["least"], times["said"]["least"]
        if ours == pytest.approx(theirs, rel=0.05, abs=0.1):
            return
        apart.append((ours, theirs))
    pytest.fail(f"the harness and the kernel's own process never agreed: {apart}")
