"""Kaggle-cli 148: success was printed though the budget was used up. A refused score says so and counts nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.record.store import Record, Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Run, home, run
from tests.workbench.live import end_hosts
from workbench.cli.exits import Exit

__all__ = ["home", "run"]

pytestmark = [pytest.mark.failures, pytest.mark.timeout(180)]


@pytest.fixture
def used_up(run: Run, home: Path, tmp_path: Path) -> Iterator[Record]:
    """A session whose three seconds are over."""
    options = (
        "--detach",
        "--yes",
        "--isolation",
        "none",
        "--minutes",
        str(3 / 60),
        "--workdir",
        str(tmp_path / "w"),
    )
    assert run("start", "tiny_sum", *options).code == Exit.OK
    (record,) = Store(home).records()
    wait_until(lambda: b'"kind":"deadline_reached"' in record.log.read_bytes(), what="the deadline")
    yield record
    end_hosts(home)


def _calls(record: Record) -> int:
    return record.log.read_bytes().count(b'"kind":"score_requested"')


@pytest.mark.parametrize("options", [(), ("--json",), ("--no-wait",), ("-m", "one more")])
def test_a_score_after_the_deadline_is_refused_in_words_with_code_3(
    run: Run, used_up: Record, options: tuple[str, ...]
) -> None:
    wait_until(lambda: _calls(used_up) >= 1)
    (Path(used_up.header()["work_tree"]) / "answer.txt").write_text("1000")
    outcome = run("score", *options, "-s", used_up.session)
    assert outcome.code == Exit.REFUSED
    assert outcome.out == "", "nothing that a script could take for a score"
    assert "cannot score" in outcome.err or "is closed" in outcome.err


def test_nothing_is_counted_for_refused_scores(run: Run, used_up: Record) -> None:
    wait_until(
        lambda: not json.loads(run("status", "--json", "-s", used_up.session).out)["pending"],
        what="the final score",
    )
    before = json.loads(run("history", "--json", "-s", used_up.session).out)["rows"]
    for _ in range(5):
        assert run("score", "-s", used_up.session).code == Exit.REFUSED
    assert json.loads(run("history", "--json", "-s", used_up.session).out)["rows"] == before
    assert run("time", "-s", used_up.session).out == "0:00:00\n"


@pytest.mark.parametrize("phase", ["before the clock", "in a break"])
def test_a_score_in_a_phase_without_scores_is_refused_and_counts_nowhere(
    run: Run, home: Path, tmp_path: Path, phase: str
) -> None:
    begun = phase == "in a break"
    options = ("--isolation", "none", "--workdir", str(tmp_path / "w"), *(("--yes",) if begun else ()))
    try:
        assert run("start", "tiny_sum", "--detach", *options).code == Exit.OK
        (record,) = Store(home).records()
        wait_until(lambda: b'"kind":"starting_score_recorded"' in record.log.read_bytes())
        if begun:
            assert run("pause").code == Exit.OK
        outcome = run("score")
        assert outcome.code == Exit.REFUSED
        assert outcome.out == ""
        assert _calls(record) == 1, "only the starting score"
    finally:
        end_hosts(home)
