"""The next snapshot reads only what changed, and never takes a change for nothing."""

import os
from pathlib import Path

import pytest

from sessions.snapshots import SnapshotStore
from tests.sessions.trees import SMALL, fill, fingerprint, restored, world


def test_a_file_changed_within_the_clock_tick_of_its_snapshot_is_read_again(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    file = work / "a"
    for number in range(1, 40):
        file.write_bytes(f"{number:04}".encode())
        store.take(work, number, "")
    for number in (1, 17, 39):
        assert (restored(store, number, tmp_path) / "a").read_bytes() == f"{number:04}".encode()


def test_a_change_that_restores_size_and_time_is_still_seen(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    file = work / "a"
    file.write_text("honest")
    os.utime(file, ns=(10**18, 10**18))
    store.take(work, 1, "")
    file.write_text("sneaky")
    os.utime(file, ns=(10**18, 10**18))
    store.take(work, 2, "")
    assert (restored(store, 2, tmp_path) / "a").read_text() == "sneaky"


def test_a_second_process_goes_on_from_the_memory_of_the_first(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2", "large": os.urandom(1 << 17)})
    store.take(work, 1, "")
    again = SnapshotStore.open(store.folder, SMALL)
    fill(work, {"d/b": "3"})
    again.take(work, 2, "")
    assert [c.path for c in again.diff(1, 2).changes] == ["d/b"]
    assert fingerprint(restored(again, 2, tmp_path)) == fingerprint(work)


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "stale"])
def test_without_a_sound_memory_everything_is_read_again(tmp_path: Path, damage: str) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2"})
    store.take(work, 1, "")
    memory = store.folder / "snapshots.memory"
    whole = memory.read_bytes()
    fill(work, {"a": "changed"})
    (work / "d/b").unlink()
    store.take(work, 2, "")
    fill(work, {"a": "again"})
    match damage:
        case "gone":
            memory.unlink()
        case "cut":
            memory.write_bytes(whole[:700])
        case "flipped":
            memory.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        case "stale":
            memory.write_bytes(whole)
    again = SnapshotStore.open(store.folder, SMALL)
    again.take(work, 3, "")
    assert fingerprint(restored(again, 3, tmp_path)) == fingerprint(work)
    assert again.verify() == ()


def test_another_working_tree_under_the_same_store_is_not_taken_for_the_first(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    store.take(work, 1, "")
    other = tmp_path / "other"
    fill(other, {"b": "2"})
    store.take(other, 2, "")
    assert fingerprint(restored(store, 2, tmp_path)) == fingerprint(other)


def test_two_stores_taking_turns_never_build_on_the_others_memory(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2"})
    other = SnapshotStore.open(store.folder, SMALL)
    states = {}
    for number in range(1, 13):
        if number % 3:
            fill(work, {"a": str(number), f"d/{number % 4}": "x"})
        (work / f"d/{(number + 1) % 4}").unlink(missing_ok=True)
        (store if number % 2 or number > 8 else other).take(work, number, "")
        states[number] = fingerprint(work)
    fresh = SnapshotStore.open(store.folder, SMALL)
    fill(work, {"last": "x"})
    fresh.take(work, 13, "")
    states[13] = fingerprint(work)
    for number, state in states.items():
        assert fingerprint(restored(fresh, number, tmp_path)) == state
    assert fresh.verify() == ()
