"""SIGKILL at any moment of a snapshot: the working tree is untouched, nested .git folders included."""

import os
import random
import signal
import subprocess
from pathlib import Path
from time import perf_counter, sleep

import pytest

from sessions.snapshots import SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, fingerprint

pytestmark = [pytest.mark.failures, pytest.mark.timeout(300)]
KILLS = 50


def workspace(folder: Path) -> Path:
    work = fill(folder, {f"src/{d}/{i}.py": f"# {d} {i}\n" for d in range(10) for i in range(30)})
    fill(work, {"weights.bin": os.urandom(3 << 20)})
    for nested in ("vendor", "deep/er/vendor"):
        subprocess.run(["git", "init", "-q", work / nested], check=True)
        fill(work / nested, {"module.py": "x = 1\n"})
    return work


def take_in_a_child(folder: Path, work: Path, number: int) -> int:
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            SnapshotStore.open(folder, SMALL).take(work, number, "to be killed")
        finally:
            os._exit(0)
    return child


def test_fifty_killed_snapshots_change_nothing_and_the_next_one_is_whole(tmp_path: Path) -> None:
    work = workspace(tmp_path / "work")
    store = SnapshotStore.create(tmp_path / "store", SMALL)
    store.take(work, 1, "")
    began = perf_counter()
    os.waitpid(take_in_a_child(store.folder, work, 2), 0)
    duration = perf_counter() - began
    chance, killed = random.Random(2), 0
    for turn in range(KILLS * 10):
        fill(work, {f"src/{turn % 10}/new{turn}.py": f"# {turn}\n", "weights.bin": os.urandom(3 << 20)})
        before = fingerprint(work, times=True)
        number = max(store.numbers()) + 1
        child = take_in_a_child(store.folder, work, number)
        sleep(chance.uniform(0, duration))  # the moment is the test's subject
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        finished = number in store.numbers()
        duration *= (
            0.8 if finished else 1.05
        )  # so that about one in five is just done, however fast the machine
        killed += not finished
        assert fingerprint(work, times=True) == before
        if killed == KILLS:
            break
    assert killed == KILLS
    survivor = SnapshotStore.open(store.folder, SMALL)
    number = max(survivor.numbers()) + 1
    taken = survivor.take(work, number, "")
    assert taken.status is SnapshotStatus.COMPLETE
    assert survivor.verify() == ()
    survivor.checkout(number, tmp_path / "out")
    assert fingerprint(tmp_path / "out", times=True) == fingerprint(work, times=True)
    git_dir = survivor.folder / "snapshots.git"
    leftovers = [*git_dir.rglob("*.lock"), *git_dir.rglob("tmp_*"), *git_dir.glob("fast_import_crash_*")]
    assert leftovers == []
    assert list((survivor.folder / "artifacts/making").iterdir()) == []
    referred = {a.sha256 for n in survivor.numbers() for a in survivor.manifest(n).artifacts}
    assert {p.name for p in (survivor.folder / "artifacts").glob("??/*")} == referred
