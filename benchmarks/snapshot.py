"""Snapshots beside their peers in one run: `git add -A && git write-tree`, and hashing and copying a checkpoint once.

    python -m benchmarks.snapshot [--json] [--rounds N] [--files N] [--megabytes N] [--folder DIR]

Every round measures ours and the peer's in turn, so that a busy machine slows both; medians and their ratios count.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from sessions.snapshots import SnapshotPolicy, SnapshotStore

TARGETS = {"unchanged": 2.5, "five changed": 2.5, "a new checkpoint": 1.5}
Round = Callable[[int], None]


def timed(action: Round, number: int) -> float:
    began = perf_counter()
    action(number)
    return perf_counter() - began


def in_turn(rounds: int, before: Round, ours: Round, peer: Round) -> tuple[list[float], list[float]]:
    """Each round prepares, then measures both, the first of them alternating."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(rounds):
        before(number)
        pair = [(ours, mine), (peer, theirs)]
        for action, seconds in pair if number % 2 else reversed(pair):
            seconds.append(timed(action, number))
    return mine, theirs


def plant(work: Path, files: int) -> None:
    for folder in range(files // 50):
        here = work / f"pkg{folder % 20}" / f"mod{folder}"
        here.mkdir(parents=True)
        for i in range(50):
            (here / f"file_{i}.py").write_text(f"# {folder} {i}\n" + "x = 1\n" * (i * 4))


class GitPeer:
    """A private index that stays warm between rounds, as the target has it."""

    def __init__(self, folder: Path, work: Path) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self._environment = clean | {
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(work),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        subprocess.run(["git", "init", "-q"], env=self._environment, check=True)

    def snapshot(self, _: int = 0) -> None:
        subprocess.run(["git", "add", "-A"], env=self._environment, check=True)
        subprocess.run(["git", "write-tree"], env=self._environment, check=True, stdout=subprocess.DEVNULL)


def small_files(folder: Path, files: int, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    work = folder / "work"
    plant(work, files)
    sleep(0.2)  # past the moment in which a file's times say too little, for git and for us
    store = SnapshotStore.create(folder / "store", SnapshotPolicy(disk_floor_bytes=0))
    peer = GitPeer(folder / "peer.git", work)
    number = iter(range(10**6))

    def ours(_: int) -> None:
        store.take(work, next(number), "benchmark")

    def edit(turn: int) -> None:
        for i in range(5):
            (work / f"pkg{i}" / f"mod{i}" / "file_7.py").write_text(f"# round {turn}\n" * 20)
        sleep(0.2)

    first = ([timed(ours, 0)], [timed(peer.snapshot, 0)])
    unchanged = in_turn(rounds, lambda _: None, ours, peer.snapshot)
    changed = in_turn(rounds, edit, ours, peer.snapshot)
    store.close()
    return {"first": first, "unchanged": unchanged, "five changed": changed}


def hash_and_copy(source: Path, target: Path) -> None:
    """The peer of a new checkpoint: hash it once, copy it once, have the copy on the disk."""
    with source.open("rb") as file:
        hashlib.file_digest(file, "sha256")
    shutil.copyfile(source, target)
    fd = os.open(target, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def checkpoint(folder: Path, megabytes: int, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    work = folder / "work"
    work.mkdir(parents=True)
    (work / "train.py").write_text("x = 1\n")
    store = SnapshotStore.create(folder / "store", SnapshotPolicy(disk_floor_bytes=0))
    source, copy = work / "model.pt", folder / "copy"

    def write(_: int) -> None:
        block = os.urandom(1 << 20)
        with source.open("wb") as file:
            for i in range(megabytes):
                file.write(i.to_bytes(8, "little") + block[8:])
            file.flush()
            os.fsync(file.fileno())
        copy.unlink(missing_ok=True)
        store.evict([])

    def ours(number: int) -> None:
        taken = store.take(work, number, "benchmark")
        assert taken.artifacts == 1, taken

    results = in_turn(rounds, write, ours, lambda _: hash_and_copy(source, copy))
    store.close()
    return {"a new checkpoint": results}


def report(results: dict[str, tuple[list[float], list[float]]]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, (mine, theirs) in results.items():
        ratio = median(mine) / median(theirs)
        target = TARGETS.get(name)
        rows.append(
            {
                "what": name,
                "ours_s": round(median(mine), 4),
                "peer_s": round(median(theirs), 4),
                "ratio": round(ratio, 2),
                "target": target,
                "met": target is None or ratio <= target,
                "rounds": len(mine),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Snapshots beside git, and beside hashing and copying")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to work; a temporary folder by default"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        results = small_files(Path(scratch) / "small", options.files, options.rounds)
        results |= checkpoint(Path(scratch) / "large", options.megabytes, max(3, options.rounds // 3))
    rows = report(results)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':18} {'ours':>9} {'peer':>9} {'ratio':>6} {'target':>7}")
    for row in rows:
        print(
            f"{row['what']:18} {row['ours_s']:8}s {row['peer_s']:8}s {row['ratio']:6} {row['target'] or '':>7}"
        )


if __name__ == "__main__":
    main()
