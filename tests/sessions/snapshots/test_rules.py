"""What a policy leaves out is left out and counted."""

from pathlib import Path

import msgspec

from sessions.snapshots import EntryKind, SnapshotPolicy, SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, world


def test_default_excludes_are_left_out_and_counted(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(
        work,
        {
            "a.py": "1",
            "__pycache__/a.pyc": b"12345",
            "lib/__pycache__/b.pyc": b"123",
            "env/pyvenv.cfg": "home = /usr/bin\n",
            "env/lib/x.py": "x",
            "target/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
            "target/debug/bin": "b",
            "impostor/CACHEDIR.TAG": "hello",
            "impostor/b": "b",
            ".cache": "a file, not a folder",
        },
    )
    taken = store.take(work, 1, "")
    paths = {e.path for e in store.entries(1)}
    assert paths == {"a.py", "lib", "impostor", "impostor/CACHEDIR.TAG", "impostor/b", ".cache"}
    by_pattern = {t.pattern: (t.places, t.files, t.bytes) for t in taken.excluded}
    assert by_pattern["__pycache__/"] == (2, 2, 8)
    assert by_pattern["holds:pyvenv.cfg"][:2] == (1, 2)
    assert {x.path for x in store.manifest(1).excluded} == {"__pycache__", "lib/__pycache__", "env", "target"}
    assert taken.status is SnapshotStatus.COMPLETE
    assert store.take(work, 2, "").excluded == taken.excluded


def test_a_marker_at_the_top_does_not_empty_the_snapshot(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"pyvenv.cfg": "", "conda-meta/x": "", "a.py": "1"})
    assert store.take(work, 1, "").files == 3


def test_a_folder_that_becomes_excluded_leaves_the_next_snapshot_and_returns_when_it_is_not(
    tmp_path: Path,
) -> None:
    store, work = world(tmp_path)
    fill(work, {"only/env/x": "x"})
    store.take(work, 1, "")
    fill(work, {"only/env/pyvenv.cfg": ""})
    store.take(work, 2, "")
    assert {e.path for e in store.entries(2)} == {"only"}
    (work / "only/env/pyvenv.cfg").unlink()
    store.take(work, 3, "")
    assert {e.path for e in store.entries(3)} == {"only", "only/env", "only/env/x"}
    assert store.verify() == ()


def test_an_environment_may_choose_its_own_excludes(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, excludes=("*.ckpt", "runs/*/", "secret/"))
    store, work = world(tmp_path, policy)
    fill(
        work,
        {
            "a.ckpt": "1",
            "d/b.ckpt": "2",
            "runs/7/x": "3",
            "runs/note": "4",
            "__pycache__/x": "5",
            "d/secret": "6",
        },
    )
    store.take(work, 1, "")
    assert {e.path for e in store.entries(1) if e.kind is EntryKind.FILE} == {
        "runs/note",
        "__pycache__/x",
        "d/secret",
    }


def test_a_record_inside_the_working_tree_does_not_eat_itself(tmp_path: Path) -> None:
    work = fill(tmp_path / "work", {"a": "1"})
    store = SnapshotStore.create(work / "records/one", SMALL)
    sizes = [store.take(work, number, "").bytes for number in (1, 2, 3)]
    assert sizes == [1, 1, 1]
    assert [x.pattern for x in store.manifest(3).excluded] == ["the record itself"]
    assert store.changed_since(3, work) == ()


def test_the_policy_of_a_snapshot_stands_in_its_manifest(tmp_path: Path) -> None:
    policy = SnapshotPolicy(max_seconds=17, disk_floor_bytes=0)
    store, work = world(tmp_path, policy)
    store.take(work, 1, "")
    assert store.manifest(1).policy == policy
