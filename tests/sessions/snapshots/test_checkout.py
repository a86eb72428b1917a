"""A snapshot comes back as files, byte for byte, whatever their names, modes and kinds."""

# Paths in bytes are what this is about, and pathlib has none.
# ruff: noqa: PTH103, PTH118, PTH208

import os
import stat
import subprocess
from pathlib import Path

import pytest

from sessions.snapshots import EntryKind, SnapshotError, SnapshotStatus, remove_checkout
from tests.sessions.trees import dug, fill, fingerprint, fsck, restored, world


def test_a_tree_comes_back_byte_for_byte_with_modes_links_times_and_empty_folders(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(
        work,
        {"train.py": "print(1)\n", "lib/model.py": "x = 2\n", "data.bin": bytes(range(256)), "nothing": b""},
    )
    (work / "train.py").chmod(0o755)
    (work / "lib/model.py").chmod(0o600)
    (work / "empty/inside").mkdir(parents=True)
    (work / "link").symlink_to("lib/model.py")
    (work / "dangling").symlink_to("../../nowhere")
    (work / "lib").chmod(0o555)
    taken = store.take(work, 1, "first")
    assert taken.status is SnapshotStatus.COMPLETE
    assert (taken.files, len(taken.commit), len(taken.tree)) == (6, 40, 40)
    assert fingerprint(restored(store, 1, tmp_path), times=True) == fingerprint(work, times=True)
    assert fsck(store) == ""
    (work / "lib").chmod(0o755)


def test_names_of_any_bytes_come_back(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    names = [
        b"a\nb",
        b'"quoted"',
        b"\xff\xfe",
        b"back\\slash",
        b"tab\t",
        b" lead",
        b"%percent",
        b"%entries.json",
        b"\\xff",
    ]
    names += [
        b".git",
        b".GIT",
        b"git~1",
        b".gitmodules",
        b".gitattributes",
        b".gitignore",
        b".g\xe2\x80\x8cit",
        b"x\\.git",
    ]
    names += [
        b"\x01",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"-rf",
        b"a" * 255,
        b"%5C",
        b"%25",
        b"\xef\xbb\xbf.git",
        b"GI7EBA~1",
    ]
    for i, name in enumerate(names):
        Path(os.fsdecode(os.path.join(os.fsencode(work), name))).write_text(str(i))
        folder = os.path.join(os.fsencode(work), b"folders", name)
        os.makedirs(folder)
        Path(os.fsdecode(os.path.join(folder, name))).write_text(str(i))
    taken = store.take(work, 1, "odd names")
    assert taken.status is SnapshotStatus.COMPLETE
    assert fingerprint(restored(store, 1, tmp_path)) == fingerprint(work)
    assert fsck(store) == ""
    assert store.verify(1) == ()


def test_a_path_longer_than_the_system_takes_at_once_comes_back(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    here = os.open(work, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("deep", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(file, b"found")
    os.close(file)
    os.close(here)
    assert store.take(work, 1, "deep").status is SnapshotStatus.COMPLETE
    store.checkout(1, tmp_path / "out")
    deepest = [e for e in store.entries(1) if e.kind is EntryKind.FILE]
    assert [e.path.rpartition("/")[2] for e in deepest] == ["deep"]
    here = os.open(tmp_path / "out", os.O_RDONLY)
    for _ in range(40):
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    assert os.listdir(here) == ["deep"]
    os.close(here)
    subprocess.run(
        ["rm", "-rf", work, tmp_path / "out"], check=True
    )  # pytest's own way of cleaning is too short


def test_set_uid_is_noted_and_not_restored(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"tool": "#!/bin/sh\n"})
    (work / "tool").chmod(0o4755)
    store.take(work, 1, "")
    assert [e.mode for e in store.entries(1)] == [stat.S_IFREG | 0o4755]
    report = store.checkout(1, tmp_path / "out")
    assert report.stripped == ("tool",)
    assert stat.S_IMODE((tmp_path / "out/tool").stat().st_mode) == 0o755


def test_a_file_that_only_looks_like_a_pointer_stays_a_file(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"large": bytes(1 << 17)})
    store.take(work, 1, "")
    digest = store.manifest(1).artifacts[0].sha256
    fill(work, {"fake": f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 131072\n"})
    store.take(work, 2, "")
    assert fingerprint(restored(store, 2, tmp_path)) == fingerprint(work)


def test_checkout_refuses_a_folder_with_something_in_it(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    store.take(work, 1, "")
    fill(tmp_path / "full", {"mine": "!"})
    with pytest.raises(SnapshotError, match="not empty"):
        store.checkout(1, tmp_path / "full")
    assert (tmp_path / "full/mine").read_text() == "!"


def test_a_checkout_of_any_depth_and_any_modes_is_restored_and_removed(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"closed/file": ""})
    (work / "closed").chmod(0o555)
    out = tmp_path / "out"
    with dug(work, 1500):
        assert store.take(work, 1, "").files == 2
        assert store.checkout(1, out).files == 2
        remove_checkout(out)
    assert not out.exists()
    assert not work.exists()
