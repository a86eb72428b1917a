"""What changed between two snapshots, and since one."""

import os
import subprocess
from pathlib import Path

from sessions.snapshots import ChangeKind
from tests.sessions.trees import fill, fingerprint, restored, world


def test_changes_deletions_and_changes_of_type_reach_the_next_snapshot(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(
        work,
        {
            "keep": "k",
            "edit": "old",
            "gone": "g",
            "d/only": "x",
            "file-to-folder": "f",
            "folder-to-file/x": "y",
            "p/q/r/s": "t",
        },
    )
    store.take(work, 1, "before")
    (work / "edit").write_text("new")
    (work / "gone").unlink()
    (work / "d/only").unlink()
    (work / "file-to-folder").unlink()
    fill(work, {"file-to-folder/now": "n", "new/deep/er": "d"})
    (work / "folder-to-file/x").unlink()
    (work / "folder-to-file").rmdir()
    (work / "folder-to-file").symlink_to("keep")
    subprocess.run(["rm", "-r", work / "p/q"], check=True)
    (work / "keep").chmod(0o700)
    store.take(work, 2, "after")
    assert fingerprint(restored(store, 2, tmp_path)) == fingerprint(work)
    kinds = {c.path: c.kind for c in store.diff(1, 2).changes}
    assert kinds["edit"] is ChangeKind.MODIFIED
    assert kinds["gone"] is ChangeKind.REMOVED
    assert kinds["file-to-folder"] is ChangeKind.TYPE_CHANGED
    assert kinds["folder-to-file"] is ChangeKind.TYPE_CHANGED
    assert kinds["new/deep/er"] is ChangeKind.ADDED
    assert kinds["keep"] is ChangeKind.MODIFIED
    assert store.verify() == ()


def test_an_unchanged_tree_is_the_same_tree_under_a_new_commit(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    first, second = store.take(work, 1, ""), store.take(work, 2, "")
    assert first.tree == second.tree
    assert first.commit != second.commit
    assert len(store.diff(1, 2)) == 0


def test_a_diff_carries_readable_text_and_says_what_is_binary_or_large(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a.py": "x = 1\ny = 2\n", "bin": b"\0\1", "large": bytes(1 << 17)})
    store.take(work, 1, "")
    fill(work, {"a.py": "x = 1\ny = 3\n", "bin": b"\0\2", "large": bytes(1 << 18), "new.py": "hello\n"})
    store.take(work, 2, "")
    changes = {c.path: c for c in store.diff(1, 2).changes}
    assert (changes["a.py"].patch or "").splitlines() == ["@@ -1,2 +1,2 @@", " x = 1", "-y = 2", "+y = 3"]
    assert (changes["new.py"].patch or "").splitlines() == ["@@ -0,0 +1,1 @@", "+hello"]
    assert changes["bin"].is_binary
    assert changes["bin"].patch is None
    assert changes["large"].is_large
    assert (changes["large"].old_size, changes["large"].new_size) == (1 << 17, 1 << 18)
    assert (changes["large"].new_digest or "").startswith("sha256:")


def test_unsnapshotted_changes_are_told_and_a_mere_touch_is_not_one(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "b": "2", "d/c": "3", "e": "4", "mode": "5"})
    store.take(work, 1, "")
    assert store.changed_since(1, work) == ()
    (work / "a").write_text("changed")
    os.utime(work / "b")
    (work / "d/c").unlink()
    (work / "mode").chmod(0o755)
    fill(work, {"new/f": "5"})
    expected = [("a", "modified"), ("d/c", "removed"), ("mode", "modified"), ("new/f", "added")]
    assert [(c.path, c.kind.value) for c in store.changed_since(1, work)] == expected
    store.take(work, 2, "")
    assert store.changed_since(2, work) == ()
    assert [(c.path, c.kind.value) for c in store.changed_since(1, work)] == expected
