"""Every kind of tampering is named in words."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessions.audit.reviewing import add_review
from sessions.audit.verify import VerifyReport, verify
from sessions.record.events import CommentAdded
from sessions.record.store import Record
from tests.sessions.bench import ME, Bench
from tests.sessions.builders import valid

BIG = 9 * 1024 * 1024


@pytest.fixture
async def closed(tmp_path: Path) -> Record:
    bench = Bench(tmp_path, valid(1.5), valid(1.2))
    await bench.running()
    bench.engine.brief(ME)
    bench.write("1.5")
    (bench.work / "weights.bin").write_bytes(bytes(BIG))
    await bench.scored("first")
    bench.engine.note("a remark", ME)
    bench.clock.advance(60)
    bench.write("1.2")
    bench.engine.submit(ME)
    await bench.engine.ending.until_finished()
    bench.engine.survey({}, ME)
    await bench.engine.ending.closed.wait()
    await bench.die()
    return bench.record


def first_problem(record: Record) -> str:
    report: VerifyReport = verify(record)
    assert not report.sound
    return report.problems[0]


def events(record: Record) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.log.read_bytes().splitlines()]


def write_rechained(record: Record, lines: list[dict[str, Any]]) -> None:
    """What a careful forger does: every hash made anew."""
    prev, written = "0" * 64, []
    for line in lines:
        line["prev"] = prev
        encoded = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
        prev = sha256(encoded).hexdigest()
        written.append(encoded)
    record.log.write_bytes(b"\n".join(written) + b"\n")


def index_of(lines: list[dict[str, Any]], kind: str) -> int:
    return next(i for i, line in enumerate(lines) if line["kind"] == kind)


def test_an_honest_record_is_sound(closed: Record) -> None:
    report = verify(closed)
    assert report.sound, report.problems
    assert report.closed
    assert report.remarks == ()
    assert len(report.head) == 64


def test_an_edited_note(closed: Record) -> None:
    closed.log.write_bytes(closed.log.read_bytes().replace(b"a remark", b"a REMARK"))
    assert "was changed after it was written" in first_problem(closed)


def test_a_log_written_anew_with_a_better_score(closed: Record) -> None:
    lines = events(closed)
    lines[index_of(lines, "score_recorded")]["body"]["raw"] = 0.5
    write_rechained(closed, lines)
    assert "something else than its report" in first_problem(closed)
    assert any("another score" in problem for problem in verify(closed).problems)


def test_a_log_written_anew_with_an_edited_note(closed: Record) -> None:
    lines = events(closed)
    lines[index_of(lines, "note_written")]["body"]["text"] = "something else"
    write_rechained(closed, lines)
    assert "the signature under the closing event does not hold" in first_problem(closed)


def test_a_log_written_anew_and_its_signature_taken_off(closed: Record) -> None:
    lines = events(closed)
    lines[index_of(lines, "note_written")]["body"]["text"] = "something else"
    lines[-1]["body"]["signature"] = None
    write_rechained(closed, lines)
    assert "not signed" in first_problem(closed)


def test_a_log_written_anew_with_an_event_after_its_end_that_hides_the_signature(closed: Record) -> None:
    lines = events(closed)
    lines[index_of(lines, "note_written")]["body"]["text"] = "something else"
    last = lines[-1]
    lines.append(last | {"seq": last["seq"] + 1, "kind": "heartbeat", "body": {}})
    write_rechained(closed, lines)
    assert "after the session was closed" in first_problem(closed)


def test_a_score_that_says_something_else_than_its_report(closed: Record) -> None:
    lines = events(closed)
    lines[index_of(lines, "score_recorded")]["body"]["message"] = "a flattering message"
    write_rechained(closed, lines)
    assert any("something else than its report" in problem for problem in verify(closed).problems)


def test_a_review_changed_by_hand(closed: Record) -> None:
    for text in ("one", "two"):
        add_review(closed, CommentAdded(text), "reviewer ann")
    assert verify(closed).sound
    closed.review_log.write_bytes(closed.review_log.read_bytes().replace(b"one", b"ONE"))
    assert first_problem(closed).startswith("review.jsonl: ")


def test_a_link_slipped_in_beside_a_report(closed: Record) -> None:
    (closed.score_folder(1) / "stdout.log.old").symlink_to("/etc/hostname")
    assert "beside the log" in first_problem(closed)


def test_a_log_written_anew_without_any_signer_is_sound_but_said_to_be_unsigned(closed: Record) -> None:
    lines = events(closed)
    lines[0]["body"]["signer"] = lines[-1]["body"]["signature"] = None
    write_rechained(closed, lines)
    report = verify(closed)
    assert report.sound
    assert "nobody signed" in report.remarks[0]


def test_a_log_signed_with_somebody_elses_key(closed: Record) -> None:
    (closed.home / "signing.key").unlink()
    report = verify(closed)
    assert report.sound
    assert "another store's key" in report.remarks[0]


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("clock_started", {"elapsed": 5000}, "says 5000 ms elapsed where the events before it give 0 ms"),
        ("note_written", {"boottime": 1}, "earlier on the boot clock"),
        ("note_written", {"boot_id": "another"}, "another boot with no interruption"),
    ],
)
def test_time_that_does_not_add_up(closed: Record, kind: str, change: dict[str, Any], words: str) -> None:
    lines = events(closed)
    lines[index_of(lines, kind)].update(change)
    write_rechained(closed, lines)
    assert any(words in problem for problem in verify(closed).problems)


def test_an_event_that_cannot_follow(closed: Record) -> None:
    lines = events(closed)
    del lines[index_of(lines, "clock_started")]
    for seq, line in enumerate(lines):
        line["seq"] = seq
    write_rechained(closed, lines)
    assert "cannot happen while the session is ready" in first_problem(closed)


def test_a_swapped_snapshot(closed: Record) -> None:
    refs = closed.folder / "snapshots.git" / "refs" / "snapshots"
    shutil.copyfile(refs / "0", refs / "1")
    assert "snapshot 1 was swapped" in first_problem(closed)


def test_a_missing_snapshot(closed: Record) -> None:
    (closed.folder / "snapshots.git" / "refs" / "snapshots" / "1").unlink()
    assert "snapshot 1 was swapped" in first_problem(closed)


def tampered_artifact(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"x" + path.read_bytes()[1:])


@pytest.mark.parametrize("tamper", [Path.unlink, tampered_artifact])
def test_a_changed_or_missing_artifact(closed: Record, tamper: Callable[[Path], None]) -> None:
    artifact = next(
        p for p in (closed.folder / "artifacts").rglob("*") if p.is_file() and p.stat().st_size == BIG
    )
    tamper(artifact)
    assert first_problem(closed).startswith("snapshot 1:")


def test_a_changed_brief(closed: Record) -> None:
    closed.brief.write_text("# Another task\n")
    assert first_problem(closed) == "brief.md was changed after the session was opened"


def test_a_changed_report(closed: Record) -> None:
    report = closed.score_folder(1) / "report.json"
    report.write_bytes(report.read_bytes().replace(b"1.5", b"1.0"))
    assert "report of score 1 was changed" in first_problem(closed)


def test_a_file_slipped_in_afterwards(closed: Record) -> None:
    (closed.folder / "scores" / "1" / "extra.log").write_text("hello")
    assert "beside the log was changed, added or removed" in first_problem(closed)


def test_a_record_under_another_name(closed: Record) -> None:
    elsewhere = closed.folder.with_name("s-other")
    closed.folder.rename(elsewhere)
    assert "the folder is called s-other" in first_problem(Record(elsewhere))


def test_a_torn_tail_is_a_remark_not_damage(tmp_path: Path, closed: Record) -> None:
    lines = closed.log.read_bytes().splitlines(keepends=True)
    closed.log.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    report = verify(closed)
    assert report.sound
    assert "half-written line" in report.remarks[0]
