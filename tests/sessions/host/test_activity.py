"""Watching a working tree: hints folded into batches, looks that miss nothing, trouble that is said."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessions.host import activity
from sessions.host.activity import ActivityBatch, ActivityWatch
from sessions.snapshots.values import ChangeKind
from tests.sessions.trees import fill
from tests.waiting import wait_until

ADDED, MODIFIED, REMOVED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.REMOVED


class ScriptedHints:
    """Hints that a test gives by hand."""

    def __init__(self, *, refuse: OSError | None = None, watched: int | None = None) -> None:
        self.refuse, self.watches = refuse, watched
        self.tell: Callable[[ChangeKind | None, str], None] | None = None
        self.stops = 0

    def start(self, _: Path, tell: Callable[[ChangeKind | None, str], None]) -> None:
        if self.refuse:
            raise self.refuse
        self.tell = tell

    def stop(self) -> None:
        self.tell = None
        self.stops += 1

    def watched(self) -> int | None:
        return self.watches

    def say(self, kind: ChangeKind | None, *paths: str) -> None:
        for path in paths:
            if self.tell:
                self.tell(kind, path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def hints_are_never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "_LATE_SECONDS", 0.0)


def begun(work: Path, hints: ScriptedHints | None = None, **more: object) -> ActivityWatch:
    """A watch whose looks are the test's own; its thread never runs."""
    watch = ActivityWatch(work, hints=hints or ScriptedHints(), clock=iter_clock(), **more)  # type: ignore[arg-type]
    watch._start_hints()
    watch.look()
    watch.drain()
    return watch


def iter_clock() -> Callable[[], float]:
    ticks: Iterator[int] = iter(range(10**9))
    return lambda: float(next(ticks))


def counts(batch: ActivityBatch | None) -> tuple[int, int, int]:
    assert batch is not None
    return batch.created, batch.modified, batch.deleted


def test_a_look_finds_what_was_created_modified_and_deleted(work: Path) -> None:
    fill(work, {"a": "1", "b": "2", "d/c": "3"})
    watch = begun(work)
    fill(work, {"a": "changed", "new/e": "4"})
    shutil.rmtree(work / "d")
    watch.look()
    batch = watch.drain()
    assert counts(batch) == (1, 1, 1)
    assert batch is not None
    assert set(batch.paths) == {"a", "new/e", "d/c"}
    assert watch.drain() is None


def test_a_change_that_was_hinted_at_is_counted_once(work: Path) -> None:
    hints = ScriptedHints()
    watch = begun(work, hints)
    fill(work, {"a": "1"})
    hints.say(ADDED, "a")
    hints.say(MODIFIED, "a")
    assert counts(watch.drain()) == (1, 0, 0)
    watch.look()
    assert watch.drain() is None


def test_a_file_created_and_deleted_between_two_batches_is_no_change(work: Path) -> None:
    hints = ScriptedHints()
    watch = begun(work, hints)
    hints.say(ADDED, "tmp")
    hints.say(REMOVED, "tmp")
    assert watch.drain() is None


def test_a_file_replaced_is_modified(work: Path) -> None:
    hints = ScriptedHints()
    watch = begun(work, hints)
    hints.say(REMOVED, "a")
    hints.say(ADDED, "a")
    assert counts(watch.drain()) == (0, 1, 0)


def test_hints_that_were_lost_are_found_by_looking_and_said(work: Path) -> None:
    hints = ScriptedHints()
    watch = begun(work, hints)
    fill(work, {str(i): "x" for i in range(50)})
    hints.say(ADDED, "0", "1")
    watch.look()
    batch = watch.drain()
    assert counts(batch) == (50, 0, 0)
    assert batch is not None
    assert batch.degraded
    assert "missed 48" in batch.reason
    watch.look()
    recovered = watch.drain()
    assert recovered is not None
    assert not recovered.degraded


def test_a_file_that_stays_open_while_it_is_written_to_is_no_lost_hint(work: Path) -> None:
    fill(work, {"log": "1"})
    watch = begun(work)
    fill(work, {"log": "12"})
    watch.look()
    batch = watch.drain()
    assert counts(batch) == (0, 1, 0)
    assert batch is not None
    assert not batch.degraded


def test_a_folder_moved_away_with_its_files_is_no_lost_hint(work: Path) -> None:
    fill(work, {"d/a": "1", "d/b": "2"})
    hints = ScriptedHints()
    watch = begun(work, hints)
    (work / "d").rename(work.parent / "elsewhere")
    hints.say(None, "d")
    watch.look()
    batch = watch.drain()
    assert counts(batch) == (0, 0, 2)
    assert batch is not None
    assert not batch.degraded


def test_excluded_folders_are_not_reported(work: Path) -> None:
    fill(work, {"env/pyvenv.cfg": "", "a/__pycache__/x.pyc": ""})
    hints = ScriptedHints()
    watch = begun(work, hints)
    fill(work, {"env/lib": "1", "a/__pycache__/y.pyc": ""})
    hints.say(ADDED, "env/lib", "a/__pycache__/y.pyc")
    watch.look()
    assert watch.drain() is None


def test_a_watcher_that_cannot_start_is_said_and_looking_goes_on(work: Path) -> None:
    watch = ActivityWatch(work, hints=ScriptedHints(refuse=OSError(28, "inotify watch limit reached")))
    watch._start_hints()
    watch.look()
    batch = watch.drain()
    assert batch is not None
    assert batch.degraded
    assert "limit reached" in batch.reason
    assert "raise fs.inotify.max_user_watches" in batch.reason
    fill(work, {"a": "1"})
    watch.look()
    assert counts(watch.drain()) == (1, 0, 0)


def test_a_watcher_that_covers_part_of_the_tree_is_said(work: Path) -> None:
    fill(work, {f"d{i}/a": "1" for i in range(30)})
    watch = ActivityWatch(work, hints=ScriptedHints(watched=10))
    watch._start_hints()
    watch.look()
    batch = watch.drain()
    assert batch is not None
    assert "10 of 31 folders are watched" in batch.reason


def test_a_burst_silences_the_watcher_until_it_is_over(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "BURST", 10)
    hints = ScriptedHints()
    watch = begun(work, hints)
    fill(work, {str(i): "x" for i in range(30)})
    hints.say(ADDED, *map(str, range(30)))
    watch.look()
    batch = watch.drain()
    assert counts(batch) == (30, 0, 0)
    assert batch is not None
    assert "more than 10 changes at once" in batch.reason
    assert hints.tell is None
    watch.look()
    over = watch.drain()
    assert over is not None
    assert not over.degraded
    assert hints.tell is not None


def test_a_working_tree_that_goes_away_is_said_and_nothing_is_raised(work: Path) -> None:
    watch = begun(work)
    work.rmdir()
    watch.look()
    batch = watch.drain()
    assert batch is not None
    assert "cannot be looked at" in batch.reason


def test_names_of_any_bytes_are_printable_in_a_batch(work: Path) -> None:
    watch = begun(work)
    (work / os.fsdecode(b"\xff\n")).write_text("x")
    watch.look()
    batch = watch.drain()
    assert batch is not None
    assert batch.paths == ("\\xff\\x0a",)


def test_the_kernel_tells_of_changes_long_before_the_next_look(work: Path) -> None:
    fill(work, {"old": "1", "moved": "2"})
    watch = ActivityWatch(work, every_seconds=3600)
    watch.start()
    try:
        wait_until(lambda: watch._before is not None)
        fill(work, {"new/a": "1", "old": "changed"})
        (work / "moved").rename(work / "renamed")
        seen: set[str] = set()

        def drained() -> bool:
            batch = watch.drain()
            if batch:
                assert not batch.degraded
                seen.update(batch.paths)
            return seen >= {"new/a", "old", "moved", "renamed"}

        wait_until(drained)
    finally:
        watch.stop()
    assert watch._thread is None


def test_starting_and_stopping_twice_is_harmless(work: Path) -> None:
    watch = ActivityWatch(work, every_seconds=3600)
    watch.stop()
    watch.start()
    watch.start()
    watch.stop()
    watch.stop()
    watch.start()
    wait_until(lambda: watch._before is not None)
    watch.stop()
