"""A snapshot that fails or is cut short says so, and the next one is sound."""

# Paths in bytes are what this is about, and pathlib has none.
# ruff: noqa: PTH118

import os
from pathlib import Path

import msgspec
import pytest

from sessions.snapshots import SkipKind, Snapshot, SnapshotError, SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, restored, world


def test_a_missing_working_tree_gives_a_failed_snapshot_that_says_so(tmp_path: Path) -> None:
    store, _ = world(tmp_path)
    taken = store.take(tmp_path / "nowhere", 1, "")
    assert taken.status is SnapshotStatus.FAILED
    assert (taken.commit, taken.tree) == ("", "")
    assert taken.problem is not None
    assert "nowhere" in taken.problem
    assert store.numbers() == ()


def test_a_failed_snapshot_is_followed_by_a_sound_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    store.take(work, 1, "")
    fill(work, {"a": "2"})
    with monkeypatch.context() as patched:
        patched.setattr("sessions.snapshots.writing.Import.place", _no_space)
        failed = store.take(work, 2, "")
    assert failed.status is SnapshotStatus.FAILED
    assert "No space left" in (failed.problem or "")
    taken = store.take(work, 2, "")
    assert taken.status is SnapshotStatus.COMPLETE
    assert (restored(store, 2, tmp_path) / "a").read_text() == "2"
    assert not list((store.folder / "snapshots.git").glob("fast_import_crash_*"))


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_without_git_a_snapshot_fails_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, work = world(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.FAILED
    assert "git" in (taken.problem or "")


def test_budgets_give_a_partial_snapshot_that_lists_what_is_missing(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, max_files=5, max_bytes=1000)
    store, work = world(tmp_path, policy)
    fill(work, {"a": "1", "b": "2", "c": bytes(2000), **{f"many/{i}": "x" for i in range(10)}})
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.PARTIAL
    assert {(s.path, s.kind) for s in taken.skipped} == {("c", SkipKind.BYTES), ("many/", SkipKind.COUNT)}
    assert {e.path for e in store.entries(1)} == {"a", "b", "many"}
    report = store.checkout(1, tmp_path / "out")
    assert {m.path for m in report.missing} == {"c", "many/"}
    assert not report.complete


def test_a_long_list_of_missing_paths_keeps_its_count(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, max_bytes=10)
    store, work = world(tmp_path, policy)
    fill(work, {f"d{i % 3}/{i}": bytes(11) for i in range(300)})
    taken = store.take(work, 1, "")
    assert taken.skipped_count == 300
    assert [s.path for s in taken.skipped] == ["d0/", "d1/", "d2/"]
    assert all("100 paths" in s.reason for s in taken.skipped)
    assert len(store.manifest(1).skipped) == 300


def test_a_number_is_taken_once_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    taken = store.take(work, 1, "")
    with pytest.raises(SnapshotError, match="snapshot 1 exists already"):
        store.take(work, 1, "")
    with pytest.raises(SnapshotError, match="no snapshot 7"):
        store.checkout(7, tmp_path / "out")
    with pytest.raises(SnapshotError, match="has the commit"):
        store.manifest("0" * 40)
    assert store.manifest(taken.commit).number == 1


def test_a_taken_snapshot_can_be_described_again_after_a_crash(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "large": os.urandom(1 << 17)})
    os.mkfifo(work / "pipe")
    taken = store.take(work, 4, "", at=1_700_000_000)
    again = SnapshotStore.open(store.folder, SMALL).snapshot(4)
    plain = {"seconds": 0.0, "waited": 0.0}
    assert msgspec.structs.replace(again, **plain) == msgspec.structs.replace(taken, **plain)


def test_everything_about_a_snapshot_is_plain_json(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    Path(os.fsdecode(os.path.join(os.fsencode(work), b"\xff\n\x1b]52;c"))).write_text("x")
    os.mkfifo(os.path.join(os.fsencode(work), b"\xffpipe"))
    taken = store.take(work, 1, "")
    assert msgspec.json.decode(msgspec.json.encode(taken), type=Snapshot) == taken
    assert taken.skipped[0].path == "\\xffpipe"
    assert all(e.path.isprintable() for e in store.entries(1))
