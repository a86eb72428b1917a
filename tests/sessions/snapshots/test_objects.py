"""The bare repository obeys nobody's settings, keeps every snapshot when it is packed, and takes writers in turn."""

import subprocess
from pathlib import Path
from threading import Thread

import pytest

from sessions.snapshots import Snapshot, SnapshotStatus, SnapshotStore
from tests.sessions.trees import SMALL, fill, fingerprint, fsck, restored, world


def test_the_participants_ignore_and_attribute_files_are_obeyed_by_nobody(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(
        work,
        {
            ".gitignore": "*\n",
            ".gitattributes": "* text eol=crlf filter=evil ident\n*.py export-ignore\n",
            "solution.py": "a = 1\n# $Id$\n",
            "crlf.txt": b"a\r\nb\r\n",
            ".git/config": '[filter "evil"]\n clean = touch /tmp/never\n[core]\n autocrlf = true\n fsmonitor = false\n',
            ".git/info/exclude": "solution.py\n",
        },
    )
    store.take(work, 1, "all of it")
    assert fingerprint(restored(store, 1, tmp_path)) == fingerprint(work)


def test_inherited_git_variables_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", elsewhere], check=True)
    marker = tmp_path / "hook-ran"
    hooks = tmp_path / "hooks"
    fill(hooks, {"reference-transaction": f"#!/bin/sh\ntouch {marker}\n"})
    (hooks / "reference-transaction").chmod(0o755)
    fill(tmp_path, {"evil.gitconfig": f"[core]\n hooksPath = {hooks}\n[diff]\n external = false\n"})
    for name, value in {
        "GIT_DIR": elsewhere / ".git",
        "GIT_WORK_TREE": elsewhere,
        "GIT_INDEX_FILE": tmp_path / "index",
        "GIT_OBJECT_DIRECTORY": elsewhere / ".git/objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": elsewhere / ".git/objects",
        "GIT_CONFIG_GLOBAL": tmp_path / "evil.gitconfig",
        "GIT_CONFIG_COUNT": 1,
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": hooks,
        "GIT_NAMESPACE": "other",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_TRACE": tmp_path / "trace",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_TEMPLATE_DIR": hooks,
    }.items():
        monkeypatch.setenv(name, str(value))
    store, work = world(tmp_path)
    fill(work, {"a.py": "1\n"})
    first = store.take(work, 1, "one")
    fill(work, {"a.py": "2\n"})
    second = store.take(work, 2, "two")
    assert (first.status, second.status) == (SnapshotStatus.COMPLETE, SnapshotStatus.COMPLETE)
    assert first.commit != second.commit
    patch = store.diff(1, 2).changes[0].patch
    assert patch is not None
    assert "+2" in patch
    store.repack()
    assert store.verify() == ()
    assert not marker.exists()
    assert not (tmp_path / "trace").exists()
    assert not list((elsewhere / ".git/objects").glob("??"))


def test_repacking_keeps_every_snapshot_and_the_next_one_goes_on(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    for number in range(1, 9):
        fill(work, {"a.py": "".join(f"line {i} of {number}\n" for i in range(200))})
        store.take(work, number, "")
    assert len(list((store.folder / "snapshots.git/objects/pack").glob("*.pack"))) == 8
    store.repack()
    assert len(list((store.folder / "snapshots.git/objects/pack").glob("*.pack"))) == 1
    fill(work, {"b": "1"})
    assert store.take(work, 9, "").status is SnapshotStatus.COMPLETE
    assert store.numbers() == tuple(range(1, 10))
    assert store.verify() == ()
    assert fsck(store) == ""


def test_refs_packed_by_somebody_elses_housekeeping_are_still_found(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    first = store.take(work, 1, "")
    subprocess.run(["git", "-C", store.folder / "snapshots.git", "pack-refs", "--all"], check=True)
    fill(work, {"a": "1"})
    store.take(work, 2, "")
    assert store.numbers() == (1, 2)
    assert store.manifest(first.commit).number == 1
    assert store.verify() == ()


def test_two_threads_and_two_stores_on_one_folder_take_turns(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {str(i): "x" for i in range(50)})
    other = SnapshotStore.open(store.folder, SMALL)
    taken: list[Snapshot] = []
    threads = [
        Thread(target=lambda s=s, n=n: taken.append(s.take(work, n, "")))
        for n, s in enumerate([store, store, other, other, store, other], start=1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(t.number for t in taken) == [1, 2, 3, 4, 5, 6]
    assert {t.status for t in taken} == {SnapshotStatus.COMPLETE}
    assert len({t.tree for t in taken}) == 1
    commits = subprocess.run(
        ["git", "-C", store.folder / "snapshots.git", "rev-list", "--all", "--count"],
        capture_output=True,
        check=True,
    )
    assert int(commits.stdout) == 6
