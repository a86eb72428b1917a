"""The guided session: every step in turn, leaving early, and what goes wrong on the way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.record.store import Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Outcome, Run
from tests.workbench.live import end_hosts
from workbench.cli.exits import Exit
from workbench.cli.practice import STEPS
from workbench.cli.root import ENTRIES

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def practised(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    def practise(*lines: str) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        monkeypatch.setenv("REBENCH_SESSION", "")
        return run("practice", "tiny_sum", "--workdir", str(tmp_path / "work"))

    yield practise
    end_hosts(home)


def test_the_whole_way_ends_in_a_closed_sound_record(practised, run: Run, home: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = practised(
        "brief",
        "rebench-workbench status",
        "check",
        'score -m "as it came"',
        "!echo 5 > answer.txt",
        "diff",
        "note tried",
        "pause",
        "resume",
        "history",
        "time",
        "submit --yes",
        "survey --answer hardest=nothing",
    )
    assert outcome.code == Exit.OK, outcome.err
    (record,) = Store(home).records()
    wait_until(record.closed)
    assert "~ answer.txt" in outcome.out
    assert run("verify", record.session).code == Exit.OK
    assert record.header()["participant"] == "practice"


def test_a_step_waits_for_its_command_and_survives_mistakes(practised) -> None:  # type: ignore[no-untyped-def]
    outcome = practised("statsu", "history", "", "it's", "brief", "skip", "quit")
    assert outcome.code == Exit.INTERRUPTED
    assert "Did you mean 'status'?" in outcome.err
    assert "apostrophe" in outcome.err
    assert "3/12" in outcome.err
    assert "4/12" not in outcome.err


def test_leaving_ends_the_session(practised, home: Path) -> None:  # type: ignore[no-untyped-def]
    assert practised("brief").code == Exit.INTERRUPTED
    (record,) = Store(home).records()
    wait_until(record.closed)
    assert b"practice was left" in record.log.read_bytes()


def test_every_step_is_a_command_that_exists() -> None:
    assert {step.word for step in STEPS} <= set(ENTRIES)
