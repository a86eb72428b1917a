"""A 5 GB sparse file beside a small edit: the snapshot is there within two seconds and says what it left out."""

from pathlib import Path

import pytest

from sessions.snapshots import SkipKind, SnapshotPolicy, SnapshotStatus
from tests.sessions.trees import fill, world
from tests.spent import processor_seconds

pytestmark = pytest.mark.failures
HUGE = 5 * 10**9


def test_a_sparse_five_gigabyte_file_costs_no_more_than_two_seconds(tmp_path: Path) -> None:
    policy = SnapshotPolicy(disk_floor_bytes=0)
    store, work = world(tmp_path, policy)
    fill(work, {"solution.py": "before"})
    with (work / "dataset.bin").open("wb") as file:
        file.truncate(HUGE)
    for number, text in ((1, "before"), (2, "after")):
        fill(work, {"solution.py": text})
        began = processor_seconds()
        taken = store.take(work, number, "")
        store.checkout(number, tmp_path / f"out{number}")
        assert processor_seconds() - began < 2.0
        assert taken.status is SnapshotStatus.PARTIAL
        assert (tmp_path / f"out{number}/solution.py").read_text() == text
    skipped = store.manifest(2).skipped[0]
    assert (skipped.path, skipped.kind, skipped.size) == ("dataset.bin", SkipKind.HUGE, HUGE)
    assert str(policy.huge_file_bytes) in skipped.reason
    assert store.manifest(2).policy.huge_file_bytes == policy.huge_file_bytes
    assert [c.path for c in store.diff(1, 2).changes] == ["solution.py"]
