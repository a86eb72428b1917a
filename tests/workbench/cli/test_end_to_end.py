"""Whole sessions through the command line, on the real host and the real scorer."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessions.record.store import Record, Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Run
from tests.workbench.live import end_hosts, host_pid
from workbench.cli.exits import Exit

pytestmark = pytest.mark.timeout(180)
Opened = Callable[..., Record]


@pytest.fixture
def opened(run: Run, home: Path, tmp_path: Path) -> Iterator[Opened]:
    def open_session(*options: str) -> Record:
        outcome = run(
            "start",
            "tiny_sum",
            "--detach",
            "--yes",
            "--isolation",
            "none",
            "--workdir",
            str(tmp_path / "work"),
            *options,
        )
        assert outcome.code == Exit.OK, outcome.err
        (record,) = Store(home).records()
        return record

    yield open_session
    end_hosts(home)


def _answer(record: Record, text: str) -> None:
    (Path(record.header()["work_tree"]) / "answer.txt").write_text(f"{text}\n")


def test_a_session_does_not_begin_inside_another(
    run: Run, opened: Opened, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = opened()
    monkeypatch.chdir(record.header()["work_tree"])
    outcome = run("start", "tiny_sum", "--detach", "--yes", "--isolation", "none")
    assert outcome.code == Exit.USAGE
    assert record.session in outcome.err
    assert "--workdir" in outcome.err
    assert len(list(Store(home).records())) == 1


def test_a_session_from_start_to_a_sound_record(run: Run, opened: Opened) -> None:
    record = opened("--participant", "jo")
    assert "Tiny sum" in run("brief").out
    _answer(record, "6")
    assert run("check").code == Exit.OK
    scored = json.loads(run("score", "-m", "six", "--json").out)
    assert (scored["raw"], scored["normalised"], scored["note"]) == (6.0, 0.5, "six")
    _answer(record, "many")
    assert run("check").code == Exit.NOT_ACCEPTED
    assert "is no number" in run("score").out
    assert run("note", "words do not work").code == Exit.OK
    assert run("submit", "--yes").code == Exit.OK
    assert run("survey", "--answer", "hardest=nothing").code == Exit.OK
    wait_until(record.closed, what="the end of the session")

    standing = json.loads(run("status", "--json", "-s", record.session).out)
    assert standing["phase"] == "closed"
    assert standing["counted"]["raw"] == 6.0
    verified = run("verify", record.session)
    assert verified.code == Exit.OK, verified.out
    assert "sound" in verified.out
    assert json.loads(run("sessions", "--json").out)["sessions"][0]["participant"] == "jo"


def test_a_score_on_an_environment_that_is_not_installed_is_computed_again(run: Run, opened: Opened) -> None:
    record = opened()
    _answer(record, "5")
    assert run("score").code == Exit.OK
    assert run("end", record.session, "--why", "test", "--yes").code == Exit.OK
    wait_until(record.closed, what="the end of the session")
    again = run("rescore", record.session, "--json")
    assert again.code == Exit.OK, again.err
    (row,) = json.loads(again.out)["rescored"]
    assert (row["before"], row["raw"], row["status"]) == (5.0, 5.0, "valid")


def test_what_changed_is_shown_between_scores_and_since_the_last(run: Run, opened: Opened) -> None:
    record = opened()
    _answer(record, "5")
    assert run("diff").out.startswith("~ answer.txt")
    assert run("score").code == Exit.OK
    out = run("diff", "--scores", "0", "1").out
    assert "-1.0" in out
    assert "+5" in out
    changes = json.loads(run("diff", "--scores", "0", "1", "--json").out)["changes"]
    assert [change["path"] for change in changes] == ["answer.txt"]


def test_a_snapshot_comes_back_byte_for_byte(run: Run, opened: Opened, tmp_path: Path) -> None:
    record = opened()
    tree = Path(record.header()["work_tree"])
    (tree / "weights.bin").write_bytes(bytes(range(256)) * 10)
    assert run("score").code == Exit.OK
    (tree / "weights.bin").write_bytes(b"overwritten")
    assert run("checkout", "1", str(tmp_path / "back"), "--scores").code == Exit.OK
    assert (tmp_path / "back" / "weights.bin").read_bytes() == bytes(range(256)) * 10


def test_a_pause_stops_the_clock_and_refuses_scores(run: Run, opened: Opened) -> None:
    record = opened()
    assert run("pause", "-m", "lunch").code == Exit.OK
    refused = run("score")
    assert refused.code == Exit.REFUSED
    assert "paused" in refused.err
    before = json.loads(run("time", "--json").out)["elapsed_ms"]
    assert run("resume").code == Exit.OK
    assert json.loads(run("time", "--json").out)["elapsed_ms"] >= before
    rows = json.loads(run("history", "--json").out)["rows"]
    assert [row["number"] for row in rows] == [0], "a refused score counts nowhere"
    assert record.log.read_text().count("score_requested") == 1


def test_a_killed_host_is_started_again_by_the_next_command(run: Run, opened: Opened) -> None:
    record = opened()
    _answer(record, "7")
    assert run("score").code == Exit.OK
    first = host_pid(record)
    os.kill(first, signal.SIGKILL)
    wait_until(
        lambda: (
            not Path(f"/proc/{first}/stat").exists()
            or "Z" in Path(f"/proc/{first}/stat").read_text().split()[2]
        )
    )
    standing = json.loads(run("status", "--json").out)
    assert standing["counted"]["raw"] == 7.0
    assert host_pid(record) != first


def test_a_host_killed_under_a_score_finishes_it_for_the_one_who_waits(run: Run, opened: Opened) -> None:
    import threading

    record = opened()
    _answer(record, "slow 1.5")

    def kill_while_scoring() -> None:
        wait_until(lambda: b'"score_progressed","body":{"number":1' in record.log.read_bytes())
        os.kill(host_pid(record), signal.SIGKILL)

    killer = threading.Thread(target=kill_while_scoring)
    killer.start()
    row = json.loads(run("score", "--json").out)
    killer.join()
    assert row["status"] == "valid"
    assert row["raw"] == 2.0


def test_a_scorer_that_breaks_is_5_and_never_a_score(run: Run, opened: Opened) -> None:
    record = opened()
    _answer(record, "break")
    outcome = run("score")
    assert outcome.code == Exit.INFRASTRUCTURE
    assert json.loads(run("status", "--json", "-s", record.session).out)["counted"]["number"] == 0


def test_the_proctor_credits_messages_holds_and_ends(run: Run, opened: Opened) -> None:
    record = opened()
    session = record.session
    assert run("message", session, "reboot at two", "--by", "kim").code == Exit.OK
    assert json.loads(run("status", "--json").out)["messages"][0]["text"] == "reboot at two"
    assert run("hold", session, "--reason", "infrastructure", "--by", "kim").code == Exit.OK
    assert run("resume").code == Exit.REFUSED, "what a proctor stopped only a proctor lets run"
    assert run("release", session, "--by", "kim").code == Exit.OK
    assert run("credit", session, "5m", "--why", "disk swap", "--by", "kim").code == Exit.OK
    assert run("credit", session, "-1m", "--why", "too much", "--by", "kim").code == Exit.OK
    assert json.loads(run("status", "--json").out)["credited_ms"] == 4 * 60_000
    assert run("correct", session, "3", "--what", "wrong", "--why", "seen", "--by", "kim").code == Exit.OK
    assert run("end", session, "--why", "fell ill", "--yes", "--by", "kim").code == Exit.OK
    wait_until(record.closed, what="the end of the session")
    assert b'"by":"proctor kim"' in record.log.read_bytes()
    assert run("verify", session).code == Exit.OK


def test_a_record_that_was_tampered_with_is_named_and_6(run: Run, opened: Opened) -> None:
    record = opened()
    _answer(record, "3")
    assert run("score").code == Exit.OK
    assert run("end", record.session, "--why", "test", "--yes").code == Exit.OK
    wait_until(record.closed, what="the end of the session")
    record.log.write_bytes(record.log.read_bytes().replace(b'"raw":3.0', b'"raw":9.0', 1))
    outcome = run("verify", record.session)
    assert outcome.code == Exit.DAMAGED
    assert "DAMAGED" in outcome.out
    assert "chain breaks" in outcome.out
    assert run("verify", "--all", "--json").code == Exit.DAMAGED
    assert run("status", "-s", record.session).code == Exit.DAMAGED


def test_a_work_folder_that_holds_something_is_refused_before_anything_is_made(
    run: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("precious")
    outcome = run("start", "tiny_sum", "--detach", "--workdir", str(tmp_path / "full"))
    assert outcome.code == Exit.USAGE
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]
    assert list(Store(home).records()) == []


@pytest.mark.parametrize(
    "name", ["file", "fifo", "dangling", "loop", "file/below", "n" * 256, "p/" * 2500, "\udcff"]
)
def test_a_place_that_can_be_no_work_folder_is_refused_with_the_reason(
    run: Run, home: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    outcome = run("start", "tiny_sum", "--detach", "--workdir", str(tmp_path / name))
    assert outcome.code == Exit.USAGE, outcome.err
    assert "choose another with --workdir" in outcome.err
    assert list((home / "sessions").glob("*")) == []


def test_a_profile_this_machine_cannot_run_says_everything_that_is_missing(run: Run, home: Path) -> None:
    outcome = run("start", "tiny_sum", "--profile", "large", "--detach")
    assert outcome.code == Exit.ENVIRONMENT
    assert "100000 cores" in outcome.err
    assert "99 GPU" in outcome.err


def test_an_unknown_environment_suggests_the_nearest(run: Run, home: Path) -> None:
    outcome = run("start", "tiny_sun", "--detach")
    assert outcome.code == Exit.ENVIRONMENT
    assert "did you mean 'tiny_sum'?" in outcome.err


def test_a_replayed_record_shows_what_was_known_then(run: Run, opened: Opened) -> None:
    record = opened()
    for value in ("2", "4"):
        _answer(record, value)
        assert run("score").code == Exit.OK
    rows = json.loads(run("history", "--json").out)["rows"]
    between = json.loads(
        run("replay", record.session, "--at", f"{rows[2]['elapsed_ms'] / 1000 - 0.001:.3f}s", "--json").out
    )
    assert between["status"]["counted"]["raw"] == 2.0
    assert len(between["rows"]) == 2
    text = run("replay", record.session, "--text").out
    assert "score #2: valid 4.0000" in text


def test_detached_without_consent_the_clock_has_not_begun(run: Run, home: Path, tmp_path: Path) -> None:
    try:
        outcome = run(
            "start", "tiny_sum", "--detach", "--isolation", "none", "--workdir", str(tmp_path / "w")
        )
        assert outcome.code == Exit.OK
        assert outcome.out.startswith("s-")
        assert "rebench-workbench begin" in outcome.err
        assert run("brief").code == Exit.REFUSED
        assert run("begin", "--yes").code == Exit.OK
        assert run("brief").code == Exit.OK
    finally:
        end_hosts(home)
