"""Whatever a tree is and becomes, its snapshots give it back byte for byte."""

# Paths in bytes are what this is about, and pathlib has none.
# ruff: noqa: PTH101, PTH102, PTH108, PTH118, PTH123, PTH211

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.snapshots import SnapshotStatus, SnapshotStore, shown, unshown
from sessions.snapshots.names import ENTRIES, from_tree, to_tree
from tests.sessions.trees import SMALL, fingerprint

POLICY = msgspec.structs.replace(SMALL, excludes=(), artifact_threshold=300)


class File(NamedTuple):
    data: bytes
    mode: int


class Link(NamedTuple):
    target: bytes


class Folder(NamedTuple):
    inside: dict[bytes, "Node"]
    mode: int


Node = File | Link | Folder

HOSTILE = [
    b".git",
    b".GIT",
    b"git~1",
    b".gitmodules",
    b".gitattributes",
    b"HEAD",
    b"%entries.json",
    b"entries.json",
    b"%",
]
HOSTILE += [
    b"\xff",
    b"a\nb",
    b'"',
    b"\\",
    b"\\x41",
    b" ",
    b"a",
    b"b",
    b".g\xe2\x80\x8cit",
    b"manifest.json",
    b"work",
    b"facts",
]
any_name = st.binary(min_size=1, max_size=12).map(lambda b: b.replace(b"/", b"_").replace(b"\0", b"_"))
names = (st.sampled_from(HOSTILE) | any_name).filter(lambda b: b not in {b".", b".."})
contents = (
    st.binary(max_size=40)
    | st.binary(min_size=301, max_size=340)
    | st.just(b"version https://git-lfs.github.com/spec/v1\n")
)
files = st.builds(File, contents, st.integers(0, 0o777).map(lambda m: m | 0o400))
links = st.builds(Link, st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"\0", b"/")))
modes = st.sampled_from([0o755, 0o700, 0o777, 0o1777, 0o750])
trees = st.recursive(
    files | links,
    lambda nodes: st.builds(Folder, st.dictionaries(names, nodes, max_size=5), modes),
    max_leaves=12,
)
tops = st.dictionaries(names, trees, max_size=6)


def build(folder: bytes, inside: dict[bytes, Node]) -> None:
    for name, node in inside.items():
        path = os.path.join(folder, name)
        match node:
            case File(data, mode):
                with open(path, "wb") as file:
                    file.write(data)
                os.chmod(path, mode)
            case Link(target):
                os.symlink(target, path)
            case Folder(below, mode):
                os.mkdir(path)
                build(path, below)
                os.chmod(path, mode)


def remove(folder: bytes, names_: set[bytes]) -> None:
    for entry in [e for e in os.scandir(folder) if e.name in names_]:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def comes_back(first: dict[bytes, Node], second: dict[bytes, Node]) -> None:
    """Three snapshots: of `first`, of `second` laid over it, and of what is left when `first`'s own names go."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        work = here / "work"
        work.mkdir()
        store = SnapshotStore.create(here / "store", POLICY)
        top, prints = os.fsencode(work), []
        for number in (1, 2, 3):
            if number == 1:
                build(top, first)
            elif number == 2:
                remove(top, set(second))
                build(top, second)
            else:
                remove(top, first.keys() - second.keys())
            assert store.take(work, number, "").status is SnapshotStatus.COMPLETE
            prints.append(fingerprint(work, times=True))
        for number, expected in enumerate(prints, start=1):
            assert store.checkout(number, here / str(number)).complete
            assert fingerprint(here / str(number), times=True) == expected
        assert store.verify() == ()
        assert store.changed_since(3, work) == ()
        store.close()


@settings(max_examples=15, deadline=None)
@given(first=tops, second=tops)
def test_any_tree_and_what_it_turns_into_come_back(
    first: dict[bytes, Node], second: dict[bytes, Node]
) -> None:
    comes_back(first, second)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(first=tops, second=tops)
def test_a_great_many_trees_come_back(first: dict[bytes, Node], second: dict[bytes, Node]) -> None:
    comes_back(first, second)


@given(st.binary(max_size=40).map(lambda b: b.replace(b"\0", b"")) | st.sampled_from(HOSTILE))
def test_every_spelling_of_a_name_can_be_undone(name: bytes) -> None:
    path = os.fsdecode(name)
    assert unshown(shown(path)) == path
    assert shown(path).isprintable()
    shown(path).encode()
    assert from_tree(to_tree(name)) == name
    assert to_tree(name) != ENTRIES.encode()


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_two_names_never_share_a_spelling(one: bytes, other: bytes) -> None:
    assert (one == other) == (to_tree(one) == to_tree(other))
