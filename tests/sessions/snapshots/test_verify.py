"""Verifying names what is damaged or forged, and damage behind does not stop what comes."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from sessions.snapshots import SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, fingerprint, restored, world


@pytest.mark.parametrize("part", ["pack", "artifact", "artifact-gone", "ref"])
def test_verify_names_what_is_damaged(tmp_path: Path, part: str) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": os.urandom(3000), "large": os.urandom(1 << 17)})
    store.take(work, 1, "")
    fill(work, {"a": os.urandom(3000)})
    store.take(work, 2, "")
    assert store.verify() == ()
    git_dir = store.folder / "snapshots.git"
    artifact = next(p for p in (store.folder / "artifacts").rglob("*") if len(p.name) == 64)
    match part:
        case "pack":
            pack = max(git_dir.glob("objects/pack/*.pack"), key=lambda p: p.stat().st_size)
            pack.chmod(0o600)
            body = bytearray(pack.read_bytes())
            body[1000] ^= 1
            pack.write_bytes(body)
        case "artifact":
            artifact.chmod(0o600)
            artifact.write_bytes(bytes(1 << 17))
        case "artifact-gone":
            artifact.unlink()
        case "ref":
            (git_dir / "refs/snapshots/2").write_text((git_dir / "refs/snapshots/1").read_text())
    problems = SnapshotStore.open(store.folder, SMALL).verify()
    assert problems
    expected = {
        "pack": "cannot be read",
        "artifact": "hash to its own name",
        "artifact-gone": "missing",
        "ref": "parent",
    }
    assert any(expected[part] in p for p in problems), problems


def test_verify_notices_facts_that_name_another_artifact(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"large": os.urandom(1 << 17)})
    store.take(work, 1, "")
    old = store.manifest(1).artifacts[0].sha256.encode()
    script = subprocess.run(
        ["git", "-C", store.folder / "snapshots.git", "fast-export", "refs/snapshots/1"],
        capture_output=True,
        check=True,
    ).stdout
    other = hashlib.sha256(b"other").hexdigest().encode()
    forged = script.replace(b'"large",33188,', b'"large",33188,').replace(
        old + b'",131072]', other + b'",131072]'
    )
    assert forged != script
    subprocess.run(
        ["git", "-C", store.folder / "snapshots.git", "fast-import", "--quiet", "--force"],
        input=forged,
        check=True,
    )
    problems = SnapshotStore.open(store.folder, SMALL).verify()
    assert any("name different artifacts" in p for p in problems), problems


@pytest.mark.parametrize("fresh", [False, True], ids=["same-process", "after-a-restart"])
def test_a_damaged_snapshot_does_not_stop_the_next_ones(tmp_path: Path, fresh: bool) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "large": os.urandom(1 << 17)})
    store.take(work, 1, "")
    large = store.manifest(1).artifacts[0].sha256
    (work / "large").unlink()
    fill(work, {"a": "2"})
    store.take(work, 2, "")
    store.close()
    for pack in (store.folder / "snapshots.git/objects/pack").glob("*.pack"):
        pack.unlink()
    if fresh:
        store = SnapshotStore.open(store.folder, SMALL)
    fill(work, {"a": "3"})
    for number in (3, 4):
        taken = store.take(work, number, "")
        assert taken.status is SnapshotStatus.COMPLETE, taken.problem
    assert fingerprint(restored(store, 4, tmp_path)) == fingerprint(work)
    assert store.evict([]).removed == ()
    problems = store.verify()
    assert {p.split(":")[0] for p in problems} == {"snapshot 1", "snapshot 2", "snapshot 3"}
    assert (store.folder / "artifacts" / large[:2] / large).exists()
