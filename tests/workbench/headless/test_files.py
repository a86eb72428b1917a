"""The work folder as an agent may read and write it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

from workbench.headless.files import PathRefused, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("held out")
    root = tmp_path / "work"
    root.mkdir()
    return root


def test_what_is_written_is_read_back_whole(root: Path) -> None:
    workspace = Workspace(root)
    content = bytes(range(256)) * 40
    assert workspace.write("deep/er/model.bin", content) == len(content)
    assert workspace.read("deep/er/model.bin").content == content
    assert workspace.read(str(root / "deep/er/model.bin"), 10, 5).content == content[10:15]


def test_a_write_replaces_and_keeps_the_mode(root: Path) -> None:
    (root / "run.sh").write_text("old and longer")
    (root / "run.sh").chmod(0o755)
    Workspace(root).write("run.sh", b"new")
    assert (root / "run.sh").read_bytes() == b"new"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in root.iterdir()] == ["run.sh"], "nothing half-written stays"


def test_appending_adds_at_the_end(root: Path) -> None:
    workspace = Workspace(root)
    workspace.write("log.txt", b"one\n", append=True)
    assert workspace.write("log.txt", b"two\n", append=True) == 8
    assert (root / "log.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "a/../../secret.txt", "/etc/passwd", "", ".", "a\0b", "..", "/"]
)
def test_a_path_that_leaves_is_refused(root: Path, path: str) -> None:
    workspace = Workspace(root)
    with pytest.raises(PathRefused):
        workspace.read(path)
    with pytest.raises(PathRefused):
        workspace.write(path, b"x")
    assert (root.parent / "secret.txt").read_text() == "held out"


def test_links_are_never_followed_neither_at_the_end_nor_on_the_way(root: Path) -> None:
    (root / "end").symlink_to(root.parent / "secret.txt")
    (root / "way").symlink_to(root.parent)
    (root / "inside").symlink_to("real")
    (root / "real").mkdir()
    workspace = Workspace(root)
    for path in ("end", "way/secret.txt", "inside/new.txt"):
        with pytest.raises(PathRefused, match="link"):
            workspace.read(path)
        with pytest.raises(PathRefused, match="link"):
            workspace.write(path, b"x")
        with pytest.raises(PathRefused, match="link"):
            workspace.write(path, b"x", append=True)
    assert (root.parent / "secret.txt").read_text() == "held out"


def test_a_fifo_holds_nobody(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises((PathRefused, OSError)):
        Workspace(root).read("pipe")
    with pytest.raises((PathRefused, OSError)):
        Workspace(root).write("pipe", b"x")
    with pytest.raises((PathRefused, OSError)):
        Workspace(root).write("pipe", b"x", append=True)


def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(root: Path) -> None:
    """The tree changes while we walk it: either the real file is written or the write is refused."""
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "folder").mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            # The writer makes the folder where it is missing: then this one goes.
            with contextlib.suppress(OSError):
                (root / "folder").rename(root / f"kept-{os.urandom(4).hex()}")
                (root / "folder").symlink_to(outside)
                (root / "folder").unlink()

    swapper = threading.Thread(target=swap)
    swapper.start()
    workspace = Workspace(root)
    try:
        for _ in range(400):
            try:
                workspace.write("folder/file", b"x")
            except (PathRefused, OSError):
                continue
    finally:
        stop.set()
        swapper.join()
    assert list(outside.iterdir()) == []


def test_a_missing_file_is_named(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not_there\.py"):
        Workspace(root).read("not_there.py")
