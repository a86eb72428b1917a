"""The kernel drops events in a burst and runs out of watches: both are said, and the next snapshot is complete."""

import json
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from sessions.host.activity import ActivityWatch
from sessions.snapshots import SnapshotPolicy, SnapshotStatus, SnapshotStore
from tests.sessions.trees import world

pytestmark = pytest.mark.failures
BURST = 50_000
WITH_FEW_WATCHES = """
import json, sys, time
from pathlib import Path
Path("/proc/sys/user/max_inotify_watches").write_text(sys.argv[2])
from sessions.host.activity import ActivityWatch
work = Path(sys.argv[1])
watch = ActivityWatch(work, every_seconds=0.2)
watch.start()
reasons, created, written, deadline = set(), 0, False, time.monotonic() + 30
while time.monotonic() < deadline and not (created == 40 and reasons):
    batch = watch.drain()
    if batch:
        created += batch.created
        reasons.add(batch.reason)
    if not written and watch._before is not None:
        written = True
        for i in range(40):
            (work / f"d{i}" / "deeper").mkdir()
            (work / f"d{i}" / "deeper" / "new").write_text("x")
    time.sleep(0.02)
watch.stop()
print(json.dumps([sorted(reasons), created]))
"""


@pytest.mark.slow
def test_a_burst_of_fifty_thousand_files_is_counted_in_full_and_said(tmp_path: Path) -> None:
    store, work = world(tmp_path, SnapshotPolicy(disk_floor_bytes=0))
    store.take(work, 1, "")
    watch = ActivityWatch(work)
    watch.start()
    deadline = monotonic() + 90
    while watch._before is None:
        assert monotonic() < deadline
        sleep(0.02)
    for i in range(BURST // 500):
        folder = work / f"d{i}"
        folder.mkdir()
        for j in range(500):
            (folder / str(j)).write_bytes(b"x")
    created, reasons = 0, set()
    while created < BURST:
        assert monotonic() < deadline, (created, reasons)
        batch = watch.drain()
        if batch:
            created += batch.created
            reasons.add(batch.reason)
        sleep(0.05)
    watch.stop()
    assert created == BURST
    assert any("changes at once" in r for r in reasons), reasons
    taken = store.take(work, 2, "")
    assert (taken.status, taken.files) == (SnapshotStatus.COMPLETE, BURST)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        # Watchdog's releases differ: at the limit some refuse to start, others watch a part.
        (10, ("no watcher", "folders are watched")),
        (60, ("folders are watched",)),
    ],
    ids=["ten watches for forty folders", "sixty watches, reached as the tree grows"],
)
def test_out_of_watches_the_rest_is_found_by_looking_and_said_with_the_remedy(
    tmp_path: Path, limit: int, said: tuple[str, ...]
) -> None:
    work = tmp_path / "work"
    for i in range(40):
        (work / f"d{i}").mkdir(parents=True)
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-c", WITH_FEW_WATCHES, work, str(limit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "unshare" in done.stderr or "max_inotify_watches" in done.stderr:
        pytest.skip("this system lets nobody lower the watch limit in a user namespace")
    assert done.returncode == 0, done.stderr
    reasons, created = json.loads(done.stdout)
    assert created == 40
    assert any("max_user_watches" in r and any(words in r for words in said) for r in reasons), reasons
    store = SnapshotStore.create(tmp_path / "store", SnapshotPolicy(disk_floor_bytes=0))
    taken = store.take(work, 1, "")
    assert (taken.status, taken.files) == (SnapshotStatus.COMPLETE, 40)
