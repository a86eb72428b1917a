"""A large file rewritten before each of thirty scores: the record stays under its budget and the disk above its floor."""

import os
from pathlib import Path

import msgspec
import pytest

from sessions.snapshots import SnapshotPolicy, SnapshotStatus
from sessions.snapshots.artifacts import Artifacts
from tests.sessions.trees import fill, world

pytestmark = pytest.mark.failures
SCORES = 30
BEST = 11


def size_of(folder: Path) -> int:
    return sum(p.stat().st_blocks * 512 for p in folder.rglob("*") if p.is_file())


def rewrite_and_score(tmp_path: Path, size: int, policy: SnapshotPolicy, slack: int) -> None:
    store, work = world(tmp_path, policy)
    free = store._artifacts.free
    for number in range(1, SCORES + 1):
        fill(work, {"model.pt": os.urandom(size), "train.py": f"step = {number}\n"})
        best = [BEST] if number >= BEST else []
        taken = store.take(work, number, "", protected_numbers=best)
        assert taken.status is SnapshotStatus.COMPLETE, taken.skipped
        assert size_of(store.folder) <= policy.artifact_budget_bytes + slack
        assert free() >= policy.disk_floor_bytes
    whole = [
        n for n in store.numbers() if all(store._artifacts.has(a.sha256) for a in store.manifest(n).artifacts)
    ]
    assert {1, BEST, SCORES} <= set(whole)
    assert store.verify() == ()
    assert store.checkout(BEST, tmp_path / "best").complete
    hashes = {store.manifest(n).artifacts[0].sha256 for n in store.numbers()}
    assert len(hashes) == SCORES


def test_thirty_rewrites_stay_under_the_budget(tmp_path: Path) -> None:
    size = 2 << 20
    policy = SnapshotPolicy(artifact_threshold=1 << 20, artifact_budget_bytes=5 * size, disk_floor_bytes=0)
    rewrite_and_score(tmp_path, size, policy, slack=2 << 20)


def test_thirty_rewrites_stay_above_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size, disk = 2 << 20, 20 << 20
    monkeypatch.setattr(Artifacts, "free", lambda self: disk - self.used())
    policy = SnapshotPolicy(artifact_threshold=1 << 20, disk_floor_bytes=8 << 20)
    policy = msgspec.structs.replace(policy, artifact_budget_bytes=1 << 40)
    rewrite_and_score(tmp_path, size, policy, slack=0)


@pytest.mark.slow
def test_thirty_rewrites_of_two_hundred_megabytes_stay_under_the_budget(tmp_path: Path) -> None:
    policy = SnapshotPolicy(artifact_budget_bytes=1 << 30, disk_floor_bytes=1 << 30)
    rewrite_and_score(tmp_path, 200 << 20, policy, slack=4 << 20)
