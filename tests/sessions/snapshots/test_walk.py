"""A working tree is looked at without being touched, also when it changes under the walk."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sessions.snapshots import SkipKind, SnapshotStatus
from tests.sessions.trees import fill, fingerprint, restored, world


def test_nothing_in_the_working_tree_is_touched_not_even_access_times(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2", "large": bytes(1 << 17)})
    long_ago = 1_000_000_000 * 10**9
    for path in (work / "a", work / "d/b", work / "large"):
        os.utime(path, ns=(long_ago, long_ago))
    before = {p: p.stat() for p in (work, *work.rglob("*"))}
    store.take(work, 1, "look, do not touch")
    for path, was in before.items():
        now = path.stat()
        assert (now.st_mtime_ns, now.st_ctime_ns, now.st_mode) == (
            was.st_mtime_ns,
            was.st_ctime_ns,
            was.st_mode,
        )
        if path.is_file():
            assert now.st_atime_ns == long_ago, path


def test_pipes_sockets_and_devices_are_listed_and_not_opened(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a.py": "1"})
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(work / "s"))
        taken = store.take(work, 1, "special")
    assert {(s.path, s.kind) for s in taken.skipped} == {("pipe", SkipKind.SPECIAL), ("s", SkipKind.SPECIAL)}
    assert taken.status is SnapshotStatus.COMPLETE
    assert taken.files == 1
    assert store.take(work, 2, "still listed").skipped_count == 2


def test_a_file_renamed_under_the_walk_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, work = world(tmp_path)
    fill(work, {"d/before": "moving", "z": "1"})
    real, moved = os.open, []

    def rename_first(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if path == "before" and not moved:
            moved.append((work / "d/before").rename(work / "after"))
        return real(path, flags, *more, **named)

    monkeypatch.setattr("sessions.snapshots.folders.os.open", rename_first)
    taken = store.take(work, 1, "")
    monkeypatch.undo()
    assert moved
    assert taken.skipped == ()
    assert {e.path for e in store.entries(1)} == {"after", "d", "z"}
    assert fingerprint(restored(store, 1, tmp_path)) == fingerprint(work)


def test_a_folder_swapped_for_a_link_under_the_walk_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, work = world(tmp_path)
    fill(work, {"d/sub/file": "inside"})
    fill(tmp_path / "outside", {"sub/file": "secret"})
    real, swapped = os.open, []

    def swap(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if path == "d/sub" and not swapped:
            (work / "d").rename(tmp_path / "aside")
            swapped.append((work / "d").symlink_to(tmp_path / "outside"))
        return real(path, flags, *more, **named)

    monkeypatch.setattr("sessions.snapshots.folders.os.open", swap)
    store.take(work, 1, "")
    monkeypatch.undo()
    assert swapped
    store.checkout(1, tmp_path / "out")
    assert not any(
        p.is_file() and p.read_text() == "secret" for p in (tmp_path / "out").rglob("*") if not p.is_symlink()
    )


def test_nested_repositories_are_stored_as_files_and_described(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    repo = work / "vendor"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    commands = ["init -q -b trunk", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m 1"]
    repo.mkdir()
    for command in commands:
        subprocess.run(["git", *command.split()], cwd=repo, check=True, env=env)
    fill(repo, {"same": "1", "edited": "1", "removed": "1"})
    subprocess.run(["git", "add", "."], cwd=repo, check=True, env=env)
    fill(repo, {"edited": "22"})
    (repo / "removed").unlink()
    fill(work, {"odd/.git": "gitdir: /somewhere/else\n"})
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repo, check=True, env=env, capture_output=True, text=True
    )
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.COMPLETE
    nested = {n.path: n for n in store.manifest(1).nested}
    assert nested["vendor"].commit == head.stdout.strip()
    assert nested["vendor"].head == "ref: refs/heads/trunk"
    assert (nested["vendor"].tracked, nested["vendor"].changed) == (3, 2)
    assert nested["odd"].problem is not None
    assert fingerprint(restored(store, 1, tmp_path)) == fingerprint(work)
