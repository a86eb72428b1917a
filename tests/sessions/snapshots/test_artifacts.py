"""Large files: kept by hash, given back without sharing a file, thinned out under a budget."""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from sessions.snapshots import EntryKind, SkipKind, SnapshotPolicy, SnapshotStatus, SnapshotStore, Tools
from sessions.snapshots.artifacts import Artifacts, copy_sparse
from tests.sessions.trees import SMALL, fill, fingerprint, world

LARGE = 1 << 17
TIGHT = msgspec.structs.replace(SMALL, artifact_budget_bytes=4 * LARGE)


def rewrite(work: Path, name: str = "model.pt", size: int = LARGE) -> str:
    data = os.urandom(size)
    fill(work, {name: data})
    return hashlib.sha256(data).hexdigest()


def kept(store: SnapshotStore) -> set[str]:
    return {p.name for p in (store.folder / "artifacts").rglob("*") if len(p.name) == 64}


def test_a_large_file_is_kept_under_its_sha_256_and_a_pointer_stands_in_the_tree(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    digest = rewrite(work)
    taken = store.take(work, 1, "")
    assert (taken.artifacts, taken.bytes, taken.files) == (1, LARGE, 1)
    assert kept(store) == {digest}
    entry = store.entries(1)[0]
    assert (entry.kind, entry.digest, entry.size) == (EntryKind.ARTIFACT, digest, LARGE)
    assert [(a.path, a.sha256, a.size) for a in store.manifest(1).artifacts] == [("model.pt", digest, LARGE)]


def test_a_restored_large_file_shares_nothing_that_writing_to_it_could_harm(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    rewrite(work)
    store.take(work, 1, "")
    store.checkout(1, tmp_path / "out")
    assert fingerprint(tmp_path / "out") == fingerprint(work)
    restored = tmp_path / "out/model.pt"
    assert restored.stat().st_nlink == 1
    restored.write_bytes(b"scribbled over")
    assert store.verify() == ()


def test_the_same_content_twice_is_kept_once(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    data = os.urandom(LARGE)
    fill(work, {"a": data, "copy/b": data})
    assert store.take(work, 1, "").artifacts == 2
    assert len(kept(store)) == 1


def test_a_sparse_file_is_kept_sparse_and_comes_back_whole(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    with (work / "sparse").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(40 << 20)
        file.write(b"island")
    store.take(work, 1, "")
    artifact = next(p for p in (store.folder / "artifacts").rglob("*") if len(p.name) == 64)
    assert artifact.stat().st_blocks * 512 < 8 << 20
    store.checkout(1, tmp_path / "out")
    assert fingerprint(tmp_path / "out") == fingerprint(work)
    assert (tmp_path / "out/sparse").stat().st_blocks * 512 < 8 << 20


@pytest.mark.parametrize(
    "layout", [[], [(0, b"a")], [(99_999, b"z")], [(0, b"a"), (50_000, b"m"), (99_999, b"z")]]
)
def test_copying_around_holes_copies_every_byte(tmp_path: Path, layout: list[tuple[int, bytes]]) -> None:
    with (tmp_path / "a").open("w+b") as source, (tmp_path / "b").open("w+b") as target:
        source.truncate(100_000)
        for at, data in layout:
            os.pwrite(source.fileno(), data, at)
        assert all(0 < at <= 100_000 for at in copy_sparse(source.fileno(), target.fileno(), 100_000))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_huge_file_is_listed_with_its_size_and_the_rest_is_stored(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, huge_file_bytes=2 * LARGE, huge_hash_seconds=0.0)
    store, work = world(tmp_path, policy)
    fill(work, {"a": "1", "huge": bytes(3 * LARGE)})
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.PARTIAL
    skipped = taken.skipped[0]
    assert (skipped.path, skipped.kind, skipped.size, skipped.sha256) == (
        "huge",
        SkipKind.HUGE,
        3 * LARGE,
        None,
    )
    fill(work, {"huge": bytes(4 * LARGE)})
    store.take(work, 2, "")
    change = store.diff(1, 2).changes[0]
    assert (change.path, change.old_size, change.new_size, change.is_large) == (
        "huge",
        3 * LARGE,
        4 * LARGE,
        True,
    )


def test_a_huge_file_is_hashed_where_that_is_quick(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, huge_file_bytes=2 * LARGE)
    store, work = world(tmp_path, policy)
    digest = rewrite(work, "huge", 3 * LARGE)
    assert store.take(work, 1, "").skipped[0].sha256 == digest
    assert kept(store) == set()


def test_old_artifacts_make_room_and_first_and_protected_ones_stay(tmp_path: Path) -> None:
    store, work = world(tmp_path, TIGHT)
    digests = {}
    for number in range(1, 9):
        digests[number] = rewrite(work)
        taken = store.take(work, number, "", protected_numbers=[3] if number >= 3 else [])
        assert taken.status is SnapshotStatus.COMPLETE
    assert kept(store) == {digests[n] for n in (1, 3, 7, 8)}
    assert set(taken.evicted) == {digests[6]}
    assert store.verify() == ()
    report = store.checkout(5, tmp_path / "five")
    assert [m.path for m in report.missing] == ["model.pt"]
    assert "evicted" in report.missing[0].reason
    assert digests[5] in report.missing[0].reason
    assert not (tmp_path / "five/model.pt").exists()


def test_what_does_not_fit_is_refused_with_its_hash_and_evicts_nothing(tmp_path: Path) -> None:
    store, work = world(tmp_path, TIGHT)
    first = rewrite(work)
    store.take(work, 1, "")
    too_large = rewrite(work, size=5 * LARGE)
    fill(work, {"a.py": "still stored"})
    taken = store.take(work, 2, "")
    assert taken.status is SnapshotStatus.PARTIAL
    assert (taken.skipped[0].kind, taken.skipped[0].sha256) == (SkipKind.ARTIFACTS, too_large)
    assert kept(store) == {first}
    store.checkout(2, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.py"]


def test_a_refused_file_is_stored_as_soon_as_there_is_room(tmp_path: Path) -> None:
    store, work = world(tmp_path, TIGHT)
    rewrite(work, size=5 * LARGE)
    store.take(work, 1, "")
    roomy = SnapshotStore.open(store.folder, SMALL)
    assert roomy.take(work, 2, "").status is SnapshotStatus.COMPLETE


def test_an_evicted_artifact_still_in_the_tree_is_stored_again(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"seed": "x"})
    store.take(work, 1, "")
    digest = rewrite(work)
    store.take(work, 2, "")
    fill(work, {"a": "1"})
    (work / "model.pt").rename(tmp_path / "aside")
    store.take(work, 3, "")
    report = store.evict([])
    assert report.removed == (digest,)
    assert report.freed_bytes >= LARGE
    (tmp_path / "aside").rename(work / "model.pt")
    assert store.take(work, 4, "").status is SnapshotStatus.COMPLETE
    assert kept(store) == {digest}
    assert store.checkout(4, tmp_path / "out").complete


def test_eviction_keeps_what_is_asked_for_and_the_newest(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    digests = {}
    for number in range(1, 6):
        digests[number] = rewrite(work)
        store.take(work, number, "")
    assert set(store.evict([2]).removed) == {digests[3], digests[4]}
    assert kept(store) == {digests[n] for n in (1, 2, 5)}
    assert store.verify() == ()


def test_the_disk_floor_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = SnapshotPolicy(artifact_threshold=1 << 16, disk_floor_bytes=10 * LARGE)
    store, work = world(tmp_path, policy)
    monkeypatch.setattr(Artifacts, "free", lambda _: 10 * LARGE + 100)
    digest = rewrite(work)
    fill(work, {"a.py": "small enough"})
    taken = store.take(work, 1, "")
    assert [(s.path, s.kind, s.sha256) for s in taken.skipped] == [("model.pt", SkipKind.DISK, digest)]
    assert kept(store) == set()
    monkeypatch.setattr(Artifacts, "free", lambda _: 5 * LARGE + 3)
    fill(work, {"b.py": "not so small"})
    taken = store.take(work, 2, "")
    assert {(s.path, s.kind) for s in taken.skipped} == {("model.pt", SkipKind.DISK), ("b.py", SkipKind.DISK)}
    assert {e.path for e in store.entries(2)} == {"a.py"}


def test_a_file_written_to_all_the_while_is_stored_and_marked_torn(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"log": "0", "large": bytes(LARGE)})

    def written_to(_: float) -> None:
        pass

    real = os.fstat
    turns = iter(range(10**6))

    def restless(fd: int) -> os.stat_result:
        path = Path(f"/proc/self/fd/{fd}").resolve()
        if path.parent == work and path.is_file():
            os.utime(path, ns=(0, next(turns)))
        return real(fd)

    patch = pytest.MonkeyPatch()
    patch.setattr("sessions.snapshots.contents.os.fstat", restless)
    try:
        taken = SnapshotStore.open(store.folder, SMALL, Tools(sleep=written_to)).take(work, 1, "")
    finally:
        patch.undo()
    assert taken.status is SnapshotStatus.PARTIAL
    assert {(s.path, s.kind) for s in taken.skipped} == {("log", SkipKind.TORN), ("large", SkipKind.TORN)}
    report = store.checkout(1, tmp_path / "out")
    assert set(report.torn) == {"log", "large"}
    assert fingerprint(tmp_path / "out") == fingerprint(work)
    assert store.take(work, 2, "").status is SnapshotStatus.COMPLETE


def test_time_running_out_in_the_middle_of_a_large_file_costs_that_file_only(tmp_path: Path) -> None:
    ticks = iter(range(10**9))
    policy = msgspec.structs.replace(SMALL, max_seconds=60.0)
    store, work = world(tmp_path, policy)
    fill(work, {"a": "1"})
    with (work / "large").open("wb") as file:
        file.truncate(400 << 20)
    slow = SnapshotStore.open(store.folder, policy, Tools(clock=lambda: float(next(ticks))))
    taken = slow.take(work, 1, "")
    assert [(s.path, s.kind) for s in taken.skipped] == [("large", SkipKind.TIME)]
    assert {e.path for e in store.entries(1)} == {"a"}
    assert not list((store.folder / "artifacts/making").iterdir())
