import json
from pathlib import Path

import pytest

from sessions.record.clock import ManualClock
from sessions.record.events import (
    Body,
    ClockStarted,
    CorrectionMade,
    EventUnreadable,
    MessageAcknowledged,
    MessageSent,
    NoteWritten,
    ScoreRequested,
    UsageReported,
)
from sessions.record.fold import EventImpossible, fold
from sessions.record.log import Journal, LogDamaged, read_log
from tests.sessions.builders import journal_at, opened


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = journal_at(tmp_path)
    journal.append(opened())
    for number in range(5):
        journal.append(NoteWritten(f"note {number}"), "participant")
    return journal


def log_of(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_what_is_appended_can_be_read_and_folds_to_the_live_state(journal: Journal, tmp_path: Path) -> None:
    contents = read_log(log_of(tmp_path))
    assert [event.seq for event in contents.events] == list(range(6))
    assert fold(contents.events) == journal.state
    assert contents.torn == b""


def test_subscribers_hear_of_an_event_only_when_it_is_on_disk(journal: Journal, tmp_path: Path) -> None:
    on_disk: list[bool] = []
    journal.subscribe(lambda _, line: on_disk.append(log_of(tmp_path).read_bytes().endswith(line + b"\n")))
    journal.append(NoteWritten("heard"))
    assert on_disk == [True]


def test_a_torn_last_line_is_dropped_reported_and_cut_before_the_next_append(
    journal: Journal, tmp_path: Path
) -> None:
    journal.close()
    path = log_of(tmp_path)
    whole = path.read_bytes()
    for cut in range(1, 60):
        path.write_bytes(whole + whole[:cut].replace(b"\n", b" "))
        assert len(read_log(path).torn) == cut
        again = Journal(path, ManualClock())
        assert len(again.torn) == cut
        again.close()
        assert path.read_bytes() == whole


def test_an_impossible_event_is_refused_and_nothing_is_written(journal: Journal, tmp_path: Path) -> None:
    before = log_of(tmp_path).read_bytes()
    with pytest.raises(EventImpossible, match="clock_started"):
        journal.append(ClockStarted())
    with pytest.raises(EventImpossible, match="where 0 is next"):
        journal.append(ScoreRequested(7))
    assert log_of(tmp_path).read_bytes() == before


@pytest.mark.parametrize(
    "body",
    [
        MessageAcknowledged(True),
        CorrectionMade(1, ["x"], "because"),  # type: ignore[arg-type]
        NoteWritten({"text": "x"}),  # type: ignore[arg-type]
        NoteWritten(None),  # type: ignore[arg-type]
        UsageReported("m", 1.5, 2),  # type: ignore[arg-type]
    ],
)
def test_a_line_that_could_not_be_read_again_is_refused_and_nothing_is_written(
    journal: Journal, tmp_path: Path, body: Body
) -> None:
    journal.append(MessageSent(1, "hello"), "proctor ann")
    before, state = log_of(tmp_path).read_bytes(), journal.state
    with pytest.raises(EventUnreadable, match="Expected"):
        journal.append(body)
    assert log_of(tmp_path).read_bytes() == before
    assert journal.state is state
    journal.append(NoteWritten("goes on"))
    assert fold(read_log(log_of(tmp_path)).events) == journal.state


def test_the_live_state_holds_what_the_line_holds_even_where_a_body_says_more(
    journal: Journal, tmp_path: Path
) -> None:
    dollars = UsageReported("m", 1, 2, dollars=float("nan"))
    event = journal.append(dollars, "agent")
    assert event.body == UsageReported("m", 1, 2, dollars=None)
    assert fold(read_log(log_of(tmp_path)).events) == journal.state


def test_a_full_disk_leaves_log_and_state_as_they_were(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = journal.state

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sessions.record.log.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        journal.append(NoteWritten("lost"))
    monkeypatch.undo()
    assert journal.state == state
    journal.append(NoteWritten("kept"))
    assert len(read_log(journal._path).events) == 7


def edit(path: Path, number: int, change: object) -> None:
    lines = path.read_bytes().split(b"\n")
    if change is None:
        del lines[number]
    else:
        event = json.loads(lines[number])
        event["body"].update(change)
        lines[number] = json.dumps(event, separators=(",", ":")).encode()
    path.write_bytes(b"\n".join(lines))


def test_an_edited_note_breaks_the_chain_at_the_line_after_it(journal: Journal, tmp_path: Path) -> None:
    edit(log_of(tmp_path), 3, {"text": "something else"})
    with pytest.raises(LogDamaged, match=r"breaks at seq 4.*line 4 was changed"):
        read_log(log_of(tmp_path))


def test_a_removed_event_is_named(journal: Journal, tmp_path: Path) -> None:
    edit(log_of(tmp_path), 2, None)
    with pytest.raises(LogDamaged, match=r"line 3 .* seq 3 where 2 belongs"):
        read_log(log_of(tmp_path))


def test_reordered_events_are_named(journal: Journal, tmp_path: Path) -> None:
    lines = log_of(tmp_path).read_bytes().split(b"\n")
    lines[2], lines[3] = lines[3], lines[2]
    log_of(tmp_path).write_bytes(b"\n".join(lines))
    with pytest.raises(LogDamaged, match="seq 3 where 2 belongs"):
        read_log(log_of(tmp_path))


def test_an_unknown_field_is_an_error_that_names_it(journal: Journal, tmp_path: Path) -> None:
    edit(log_of(tmp_path), 5, {"colour": "red"})
    with pytest.raises(LogDamaged, match="colour"):
        read_log(log_of(tmp_path))


def test_a_second_copy_is_written_as_the_log_grows(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere.jsonl"
    with Journal(tmp_path / "events.jsonl", ManualClock(), copy_to=copy) as journal:
        journal.append(opened())
        journal.append(NoteWritten("twice"))
    assert copy.read_bytes() == (tmp_path / "events.jsonl").read_bytes()


def grown(folder: Path, copy: Path, text: str) -> Path:
    with Journal(folder / "events.jsonl", ManualClock(), copy_to=copy) as journal:
        journal.append(NoteWritten(text))
    return folder / "events.jsonl"


@pytest.mark.parametrize("harm", ["cut", "torn", "missing"])
def test_a_copy_that_is_behind_catches_up(journal: Journal, tmp_path: Path, harm: str) -> None:
    journal.close()
    copy = tmp_path / "copy.jsonl"
    log = grown(tmp_path, copy, "one")
    if harm == "missing":
        copy.unlink()
    else:
        copy.write_bytes(copy.read_bytes()[:-30] if harm == "cut" else copy.read_bytes() + b'{"seq":7')
    assert grown(tmp_path, copy, "two").read_bytes() == copy.read_bytes() == log.read_bytes()


def test_a_copy_that_says_something_else_is_kept_aside(journal: Journal, tmp_path: Path) -> None:
    journal.close()
    copy = tmp_path / "copy.jsonl"
    grown(tmp_path, copy, "one")
    copy.write_bytes(copy.read_bytes().replace(b"note 2", b"note X"))
    log = grown(tmp_path, copy, "two")
    assert copy.read_bytes() == log.read_bytes()
    assert b"note X" in (tmp_path / "copy.jsonl.differs-1").read_bytes()


def test_a_copy_that_cannot_be_written_holds_nothing_up(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    with Journal(tmp_path / "events.jsonl", ManualClock(), copy_to=place / "copy.jsonl") as journal:
        place.rmdir()
        journal.append(opened())
        assert journal.copy is not None
        assert "is behind" in str(journal.copy.problem)
        place.mkdir()
        journal.append(NoteWritten("on record"))
        assert journal.copy.problem is None
    assert (place / "copy.jsonl").read_bytes() == (tmp_path / "events.jsonl").read_bytes()
