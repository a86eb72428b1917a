"""Trees made to break what reads them: each is stored, or what is left out is said."""

from pathlib import Path

import pytest

from sessions.snapshots import SkipKind, SnapshotError, SnapshotStatus
from sessions.snapshots.folders import _LONGEST, _stretches
from sessions.snapshots.walk import LONGEST_PATH
from tests.sessions.trees import dug, fill, restored, world


def test_a_folder_whose_path_would_fill_the_memory_is_left_out_and_said(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    with dug(work, 90, "é" * 100):
        taken = store.take(work, 1, "")
        assert (taken.status, taken.files) == (SnapshotStatus.PARTIAL, 0)
        (left_out,) = taken.skipped
        assert left_out.kind is SkipKind.PATH
        assert "its path has more than" in left_out.reason
        kept = max(len(entry.path.encode()) for entry in store.entries(1))
        assert LONGEST_PATH < kept <= LONGEST_PATH + 201  # a folder left out is stored as an empty one
        assert store.changed_since(1, work) == ()
        restored(store, 1, work)


@pytest.mark.parametrize("name", ["file", "loop", "n" * 256, "p/" * 2500])
def test_a_place_that_cannot_take_a_snapshot_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    store, work = world(tmp_path)
    store.take(work, 1, "")
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SnapshotError, match="name an empty folder"):
        store.checkout(1, tmp_path / name)


@pytest.mark.parametrize("part", ["d", "é" * 127, "\udcff\n"])
def test_a_long_path_is_walked_in_few_pieces_that_the_kernel_takes(part: str) -> None:
    path = "/".join([part] * 4000)
    pieces = list(_stretches(path))
    assert "/".join(pieces) == path
    sizes = [len(piece.encode("utf-8", "surrogateescape")) for piece in pieces]
    assert max(sizes) <= _LONGEST
    assert len(pieces) <= sum(sizes) // (_LONGEST - 256) + 1


def test_a_diff_of_countless_changes_fits_into_one_message_and_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions.snapshots.diff._PATCH_CHARACTERS", 3_000)
    monkeypatch.setattr("sessions.snapshots.tally._LISTED_IN_ANSWER", 50)
    store, work = world(tmp_path)
    store.take(work, 1, "")
    fill(work, {f"f{n:02}": "x" * 1_000 for n in range(60)})
    store.take(work, 2, "")
    found = store.diff(1, 2)
    assert (len(found), found.unlisted) == (50, 10)
    assert sum(change.patch is not None for change in found.changes) == 3
    assert found.truncated == 47
    monkeypatch.setattr("sessions.snapshots.tally._CHARACTERS_IN_ANSWER", 30)
    assert len(store.diff(1, 2)) == 10
