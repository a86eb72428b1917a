"""Records as the first schema wrote them, bundled by the version of that time; they open, verify and replay ever after."""

import json
from pathlib import Path

import pytest

from sessions.record.clock import SystemClock
from sessions.record.fold import fold
from sessions.record.log import Journal, read_log
from sessions.record.store import Store
from tests.workbench.cli.conftest import Run

BUNDLES = Path(__file__).resolve().parents[2] / "sessions" / "record" / "schema1"


@pytest.fixture
def closed(run: Run, home: Path) -> str:
    """A closed session with four scores, a shell, a credit, and a review with one more scoring; taken in."""
    assert run("import", str(BUNDLES / "closed.rebench.tar.gz")).code == 0
    (record,) = Store(home).records()
    return record.session


def test_a_closed_record_verifies_and_its_scores_are_what_they_were(closed: str, run: Run) -> None:
    assert run("verify", closed).code == 0
    rows = json.loads(run("history", "--session", closed, "--json").out)["rows"]
    assert [(row["number"], row["status"], row["raw"]) for row in rows] == [
        (0, "valid", 76.67130156791514),
        (1, "valid", 0.3513792489869483),
        (2, "invalid", None),
        (3, "valid", 0.00895560412010008),
    ]
    assert [row["snapshot"] for row in rows] == [0, 1, 2, 5]


def test_a_closed_record_replays_and_reports(closed: str, run: Run, tmp_path: Path) -> None:
    shown = run("replay", closed, "--event", "9999", "--text")
    assert shown.code == 0
    assert "closed" in shown.out
    assert "/tmp/schema1/a/work#" in run("replay", closed, "--event", "20", "--terminal").out
    page = tmp_path / "page.html"
    assert run("report", closed, "--output", str(page)).code == 0
    assert "starting score" in page.read_text()


def test_a_review_with_an_old_rescoring_is_read_and_added_to(closed: str, run: Run) -> None:
    before = json.loads(run("review", closed, "--json").out)
    assert run("review", closed, "--comment", "read again", "--by", "al").code == 0
    after = json.loads(run("review", closed, "--json").out)
    assert len(after["review"]) == len(before["review"]) + 1 == 4
    assert run("verify", closed).code == 0


def test_an_old_record_that_was_going_on_goes_on(run: Run, home: Path) -> None:
    assert run("import", str(BUNDLES / "open.rebench.tar.gz")).code == 0
    (record,) = Store(home).records()
    events = read_log(record.log).events
    with Journal(record.log, SystemClock()) as journal:
        assert journal.state == fold(events)
        assert journal.state.best is not None
        assert journal.state.best.raw == 24.632613628774763
