"""Locks of a process that died stop no later snapshot; a live owner is waited for, and named when it takes too long."""

import fcntl
import os
import subprocess
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import msgspec
import pytest

from sessions.snapshots import Snapshot, SnapshotBusy, SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, world

pytestmark = pytest.mark.failures
LOCKS = (
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "refs/snapshots/2.lock",
    "refs/snapshots/3.lock",
    "gc.pid",
)


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_after_a_dead_process_two_snapshots_at_once_both_finish(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "large": bytes(1 << 17)})
    store.take(work, 1, "")
    dead = dead_pid()
    for name in LOCKS:
        fill(store.folder / "snapshots.git", {name: f"{dead} {os.uname().nodename}\n"})
    fill(store.folder, {"snapshots.lock": f"{dead} to take snapshot 2\n", "snapshots.taking": ""})
    fill(store.folder / "snapshots.git", {"objects/pack/tmp_pack_x": "half", "fast_import_crash_1": "x"})
    fill(store.folder / "artifacts", {"making/0123": "half"})
    fill(work, {"a": "2"})
    taken: list[Snapshot] = []
    other = SnapshotStore(store.folder, SMALL)
    threads = [
        Thread(target=lambda s=s, n=n: taken.append(s.take(work, n, ""))) for n, s in ((2, store), (3, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(t.number for t in taken) == [2, 3]
    assert {t.status for t in taken} == {SnapshotStatus.COMPLETE}
    assert store.verify() == ()
    assert not [p for p in store.folder.rglob("*") if p.name.endswith(".lock") and p.name != "snapshots.lock"]
    assert not [
        p for p in store.folder.rglob("*") if "tmp_pack" in p.name or "crash" in p.name or p.name == "0123"
    ]


def test_a_snapshot_waits_for_a_live_one_and_says_how_long(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    held, let_go = Event(), Event()

    def hold() -> None:
        with (store.folder / "snapshots.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            held.set()
            let_go.wait(timeout=30)

    holder = Thread(target=hold)
    holder.start()
    held.wait(timeout=30)
    taken: list[Snapshot] = []
    taker = Thread(target=lambda: taken.append(store.take(work, 1, "")))
    began = monotonic()
    taker.start()
    taker.join(timeout=0.2)
    assert taker.is_alive()
    let_go.set()
    taker.join(timeout=30)
    holder.join(timeout=30)
    assert taken[0].status is SnapshotStatus.COMPLETE
    assert 0.1 < taken[0].waited <= monotonic() - began


def test_a_live_owner_that_keeps_the_store_is_named(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    impatient = SnapshotStore(store.folder, msgspec.structs.replace(SMALL, wait_seconds=0.1))
    with (store.folder / "snapshots.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{os.getpid()} to take snapshot 7\n")
        file.flush()
        with pytest.raises(SnapshotBusy, match=f"held by process {os.getpid()} to take snapshot 7"):
            impatient.take(work, 1, "")
    assert impatient.take(work, 1, "").status is SnapshotStatus.COMPLETE
