"""Taking, restoring, comparing and verifying snapshots."""

# Paths in bytes are what this is about, and pathlib has none.
# ruff: noqa: PTH103, PTH118, PTH208

import hashlib
import os
import socket
import stat
import subprocess
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from sessions.snapshots import (
    ChangeKind,
    EntryKind,
    SkipKind,
    Snapshot,
    SnapshotError,
    SnapshotPolicy,
    SnapshotStatus,
    SnapshotStore,
)
from tests.sessions.trees import SMALL, fill, fingerprint, world


def restored(store: SnapshotStore, ref: int | str, tmp_path: Path) -> Path:
    into = tmp_path / f"restored-{ref}"
    store.checkout(ref, into)
    return into


def fsck(store: SnapshotStore) -> str:
    """git's own opinion, at its strictest."""
    done = subprocess.run(
        ["git", "-C", store.folder / "snapshots.git", "fsck", "--strict", "--full", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    return "\n".join(
        line for line in said.splitlines() if not line.startswith("notice: HEAD points to an unborn")
    )


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


def test_a_file_changed_within_the_clock_tick_of_its_snapshot_is_read_again(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    file = work / "a"
    for number in range(1, 40):
        file.write_bytes(f"{number:04}".encode())
        store.take(work, number, "")
    for number in (1, 17, 39):
        assert (restored(store, number, tmp_path) / "a").read_bytes() == f"{number:04}".encode()


def test_a_change_that_restores_size_and_time_is_still_seen(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    file = work / "a"
    file.write_text("honest")
    os.utime(file, ns=(10**18, 10**18))
    store.take(work, 1, "")
    file.write_text("sneaky")
    os.utime(file, ns=(10**18, 10**18))
    store.take(work, 2, "")
    assert (restored(store, 2, tmp_path) / "a").read_text() == "sneaky"


def test_a_second_process_goes_on_from_the_memory_of_the_first(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2", "large": os.urandom(1 << 17)})
    store.take(work, 1, "")
    again = SnapshotStore.open(store.folder, SMALL)
    fill(work, {"d/b": "3"})
    again.take(work, 2, "")
    assert [c.path for c in again.diff(1, 2).changes] == ["d/b"]
    assert fingerprint(restored(again, 2, tmp_path)) == fingerprint(work)


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "stale"])
def test_without_a_sound_memory_everything_is_read_again(tmp_path: Path, damage: str) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2"})
    store.take(work, 1, "")
    memory = store.folder / "snapshots.memory"
    whole = memory.read_bytes()
    fill(work, {"a": "changed"})
    (work / "d/b").unlink()
    store.take(work, 2, "")
    fill(work, {"a": "again"})
    match damage:
        case "gone":
            memory.unlink()
        case "cut":
            memory.write_bytes(whole[:700])
        case "flipped":
            memory.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        case "stale":
            memory.write_bytes(whole)
    again = SnapshotStore.open(store.folder, SMALL)
    again.take(work, 3, "")
    assert fingerprint(restored(again, 3, tmp_path)) == fingerprint(work)
    assert again.verify() == ()


def test_another_working_tree_under_the_same_store_is_not_taken_for_the_first(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    store.take(work, 1, "")
    other = tmp_path / "other"
    fill(other, {"b": "2"})
    store.take(other, 2, "")
    assert fingerprint(restored(store, 2, tmp_path)) == fingerprint(other)


def test_default_excludes_are_left_out_and_counted(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(
        work,
        {
            "a.py": "1",
            "__pycache__/a.pyc": b"12345",
            "lib/__pycache__/b.pyc": b"123",
            "env/pyvenv.cfg": "home = /usr/bin\n",
            "env/lib/x.py": "x",
            "target/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
            "target/debug/bin": "b",
            "impostor/CACHEDIR.TAG": "hello",
            "impostor/b": "b",
            ".cache": "a file, not a folder",
        },
    )
    taken = store.take(work, 1, "")
    paths = {e.path for e in store.entries(1)}
    assert paths == {"a.py", "lib", "impostor", "impostor/CACHEDIR.TAG", "impostor/b", ".cache"}
    by_pattern = {t.pattern: (t.places, t.files, t.bytes) for t in taken.excluded}
    assert by_pattern["__pycache__/"] == (2, 2, 8)
    assert by_pattern["holds:pyvenv.cfg"][:2] == (1, 2)
    assert {x.path for x in store.manifest(1).excluded} == {"__pycache__", "lib/__pycache__", "env", "target"}
    assert taken.status is SnapshotStatus.COMPLETE
    assert store.take(work, 2, "").excluded == taken.excluded


def test_a_marker_at_the_top_does_not_empty_the_snapshot(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"pyvenv.cfg": "", "conda-meta/x": "", "a.py": "1"})
    assert store.take(work, 1, "").files == 3


def test_a_folder_that_becomes_excluded_leaves_the_next_snapshot_and_returns_when_it_is_not(
    tmp_path: Path,
) -> None:
    store, work = world(tmp_path)
    fill(work, {"only/env/x": "x"})
    store.take(work, 1, "")
    fill(work, {"only/env/pyvenv.cfg": ""})
    store.take(work, 2, "")
    assert {e.path for e in store.entries(2)} == {"only"}
    (work / "only/env/pyvenv.cfg").unlink()
    store.take(work, 3, "")
    assert {e.path for e in store.entries(3)} == {"only", "only/env", "only/env/x"}
    assert store.verify() == ()


def test_an_environment_may_choose_its_own_excludes(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, excludes=("*.ckpt", "runs/*/", "secret/"))
    store, work = world(tmp_path, policy)
    fill(
        work,
        {
            "a.ckpt": "1",
            "d/b.ckpt": "2",
            "runs/7/x": "3",
            "runs/note": "4",
            "__pycache__/x": "5",
            "d/secret": "6",
        },
    )
    store.take(work, 1, "")
    assert {e.path for e in store.entries(1) if e.kind is EntryKind.FILE} == {
        "runs/note",
        "__pycache__/x",
        "d/secret",
    }


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


def test_a_number_is_taken_once_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    taken = store.take(work, 1, "")
    with pytest.raises(SnapshotError, match="snapshot 1 exists already"):
        store.take(work, 1, "")
    with pytest.raises(SnapshotError, match="no snapshot 7"):
        store.checkout(7, tmp_path / "out")
    with pytest.raises(SnapshotError, match="has the commit"):
        store.manifest("0" * 40)
    assert store.manifest(taken.commit).number == 1


def test_a_taken_snapshot_can_be_described_again_after_a_crash(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "large": os.urandom(1 << 17)})
    os.mkfifo(work / "pipe")
    taken = store.take(work, 4, "", at=1_700_000_000)
    again = SnapshotStore.open(store.folder, SMALL).snapshot(4)
    plain = {"seconds": 0.0, "waited": 0.0}
    assert msgspec.structs.replace(again, **plain) == msgspec.structs.replace(taken, **plain)


def test_a_missing_working_tree_gives_a_failed_snapshot_that_says_so(tmp_path: Path) -> None:
    store, _ = world(tmp_path)
    taken = store.take(tmp_path / "nowhere", 1, "")
    assert taken.status is SnapshotStatus.FAILED
    assert (taken.commit, taken.tree) == ("", "")
    assert taken.problem is not None
    assert "nowhere" in taken.problem
    assert store.numbers() == ()


def test_a_failed_snapshot_is_followed_by_a_sound_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1"})
    store.take(work, 1, "")
    fill(work, {"a": "2"})
    with monkeypatch.context() as patched:
        patched.setattr("sessions.snapshots.writing.Import.place", _no_space)
        failed = store.take(work, 2, "")
    assert failed.status is SnapshotStatus.FAILED
    assert "No space left" in (failed.problem or "")
    taken = store.take(work, 2, "")
    assert taken.status is SnapshotStatus.COMPLETE
    assert (restored(store, 2, tmp_path) / "a").read_text() == "2"
    assert not list((store.folder / "snapshots.git").glob("fast_import_crash_*"))


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_budgets_give_a_partial_snapshot_that_lists_what_is_missing(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, max_files=5, max_bytes=1000)
    store, work = world(tmp_path, policy)
    fill(work, {"a": "1", "b": "2", "c": bytes(2000), **{f"many/{i}": "x" for i in range(10)}})
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.PARTIAL
    assert {(s.path, s.kind) for s in taken.skipped} == {("c", SkipKind.BYTES), ("many/", SkipKind.COUNT)}
    assert {e.path for e in store.entries(1)} == {"a", "b", "many"}
    report = store.checkout(1, tmp_path / "out")
    assert {m.path for m in report.missing} == {"c", "many/"}
    assert not report.complete


def test_a_long_list_of_missing_paths_keeps_its_count(tmp_path: Path) -> None:
    policy = msgspec.structs.replace(SMALL, max_bytes=10)
    store, work = world(tmp_path, policy)
    fill(work, {f"d{i % 3}/{i}": bytes(11) for i in range(300)})
    taken = store.take(work, 1, "")
    assert taken.skipped_count == 300
    assert [s.path for s in taken.skipped] == ["d0/", "d1/", "d2/"]
    assert all("100 paths" in s.reason for s in taken.skipped)
    assert len(store.manifest(1).skipped) == 300


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


def test_everything_about_a_snapshot_is_plain_json(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    Path(os.fsdecode(os.path.join(os.fsencode(work), b"\xff\n\x1b]52;c"))).write_text("x")
    os.mkfifo(os.path.join(os.fsencode(work), b"\xffpipe"))
    taken = store.take(work, 1, "")
    assert msgspec.json.decode(msgspec.json.encode(taken), type=Snapshot) == taken
    assert taken.skipped[0].path == "\\xffpipe"
    assert all(e.path.isprintable() for e in store.entries(1))


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


def test_the_policy_of_a_snapshot_stands_in_its_manifest(tmp_path: Path) -> None:
    policy = SnapshotPolicy(max_seconds=17, disk_floor_bytes=0)
    store, work = world(tmp_path, policy)
    store.take(work, 1, "")
    assert store.manifest(1).policy == policy


def test_a_record_inside_the_working_tree_does_not_eat_itself(tmp_path: Path) -> None:
    work = fill(tmp_path / "work", {"a": "1"})
    store = SnapshotStore.create(work / "records/one", SMALL)
    sizes = [store.take(work, number, "").bytes for number in (1, 2, 3)]
    assert sizes == [1, 1, 1]
    assert [x.pattern for x in store.manifest(3).excluded] == ["the record itself"]
    assert store.changed_since(3, work) == ()


def test_refs_packed_by_somebody_elses_housekeeping_are_still_found(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    first = store.take(work, 1, "")
    subprocess.run(["git", "-C", store.folder / "snapshots.git", "pack-refs", "--all"], check=True)
    fill(work, {"a": "1"})
    store.take(work, 2, "")
    assert store.numbers() == (1, 2)
    assert store.manifest(first.commit).number == 1
    assert store.verify() == ()


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


def test_two_stores_taking_turns_never_build_on_the_others_memory(tmp_path: Path) -> None:
    store, work = world(tmp_path)
    fill(work, {"a": "1", "d/b": "2"})
    other = SnapshotStore.open(store.folder, SMALL)
    states = {}
    for number in range(1, 13):
        if number % 3:
            fill(work, {"a": str(number), f"d/{number % 4}": "x"})
        (work / f"d/{(number + 1) % 4}").unlink(missing_ok=True)
        (store if number % 2 or number > 8 else other).take(work, number, "")
        states[number] = fingerprint(work)
    fresh = SnapshotStore.open(store.folder, SMALL)
    fill(work, {"last": "x"})
    fresh.take(work, 13, "")
    states[13] = fingerprint(work)
    for number, state in states.items():
        assert fingerprint(restored(fresh, number, tmp_path)) == state
    assert fresh.verify() == ()


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


def test_without_git_a_snapshot_fails_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, work = world(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    taken = store.take(work, 1, "")
    assert taken.status is SnapshotStatus.FAILED
    assert "git" in (taken.problem or "")
