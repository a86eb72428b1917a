"""An unreadable file and a nested repository without commits never make a later snapshot repeat an earlier one."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessions.snapshots import SnapshotStore
from tests.sessions.trees import SMALL, fill, fingerprint, without_privileges

pytestmark = pytest.mark.failures


def test_three_scores_have_three_snapshots_each_partial_and_naming_the_unreadable_file(
    tmp_path: Path,
) -> None:
    world = tmp_path / "world"
    work = fill(
        world / "work", {"solution.py": "0", "secret/key": "k", "unreadable": "u", "locked/inside": "i"}
    )
    subprocess.run(["git", "init", "-q", work / "vendor"], check=True)
    fill(work, {"vendor/module.py": "v"})

    def take_three() -> list[Any]:
        (work / "unreadable").chmod(0)
        (work / "locked").chmod(0)
        store = SnapshotStore.create(world / "store", SMALL)
        taken = []
        for number in (1, 2, 3):
            fill(work, {"solution.py": f"attempt {number}", "vendor/module.py": f"edit {number}"})
            taken.append(msgspec.to_builtins(store.take(work, number, f"score {number}")))
            store.checkout(number, world / f"out{number}")
        taken.append(msgspec.to_builtins(store.manifest(3).nested))
        taken.append(store.verify())
        return taken

    *taken, nested, problems = without_privileges(take_three)
    assert len({t["commit"] for t in taken}) == 3
    assert len({t["tree"] for t in taken}) == 3
    for snapshot in taken:
        assert snapshot["status"] == "partial"
        assert {s["path"] for s in snapshot["skipped"]} == {"unreadable", "locked/"}
        assert all("Permission denied" in s["reason"] for s in snapshot["skipped"])
    for number in (1, 2, 3):
        out = world / f"out{number}"
        assert (out / "solution.py").read_text() == f"attempt {number}"
        assert (out / "vendor/module.py").read_text() == f"edit {number}"
    assert fingerprint(world / "out3/vendor") == fingerprint(work / "vendor")
    assert [(n["path"], n["commit"], n["problem"]) for n in nested] == [("vendor", None, "no commit yet")]
    assert problems == []


def test_a_file_that_became_unreadable_is_not_passed_off_with_its_old_contents(tmp_path: Path) -> None:
    world = tmp_path / "world"
    work = fill(world / "work", {"a.py": "old", "b.py": "fine"})

    def take_two() -> list[Any]:
        store = SnapshotStore.create(world / "store", SMALL)
        store.take(work, 1, "")
        (work / "a.py").write_text("new, and locked")
        (work / "a.py").chmod(0)
        second = store.take(work, 2, "")
        store.checkout(2, world / "out")
        (work / "a.py").chmod(0o600)
        third = store.take(work, 3, "")
        return [second.status, [s.path for s in second.skipped], third.status]

    assert without_privileges(take_two) == ["partial", ["a.py"], "complete"]
    assert [p.name for p in (world / "out").iterdir()] == ["b.py"]
