"""Reading a snapshot back: its manifest, and its stored paths with their facts."""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from sessions.snapshots.names import ENTRIES, child, from_tree, shown, unshown
from sessions.snapshots.objects import EMPTY_TREE, Broken, Objects, parse_commit
from sessions.snapshots.values import Entry, EntryKind, Manifest

_KINDS = {"120000": EntryKind.LINK, "40000": EntryKind.FOLDER}
_MODES = {"120000": 0o120777, "40000": 0o040755, "100644": 0o100644, "100755": 0o100755}
_PRIVATE_ENTRIES = os.fsdecode(from_tree(ENTRIES.encode()))


class Sides(NamedTuple):
    """The three things under a commit's tree."""

    commit: str
    parents: list[str]
    work: str
    facts: str
    manifest: str


class Fact(NamedTuple):
    mode: int
    mtime_ns: int
    sha256: str | None = None
    size: int | None = None


def sides(objects: Objects, commit: str) -> Sides:
    tree, parents = parse_commit(objects.read(commit, "commit"))
    found = {e.name: e.oid for e in objects.tree(tree)}
    try:
        return Sides(commit, parents, found.get("work", EMPTY_TREE), found["facts"], found["manifest.json"])
    except KeyError as missing:
        raise Broken(f"the commit {commit} has no {missing} in its tree") from None


def manifest(objects: Objects, where: Sides) -> Manifest:
    try:
        return msgspec.json.decode(objects.read(where.manifest, "blob"), type=Manifest)
    except msgspec.DecodeError as error:
        raise Broken(f"the manifest of {where.commit} cannot be understood: {error}") from error


def facts_of(objects: Objects, tree: str | None) -> tuple[dict[str, Fact], dict[str, str]]:
    """A facts tree's rows by shown name, and its subfolders by name."""
    if tree is None:
        return {}, {}
    below = {}
    rows: dict[str, Fact] = {}
    for entry in objects.tree(tree):
        if entry.mode == "40000":
            below[entry.name] = entry.oid
        elif entry.name == _PRIVATE_ENTRIES:
            try:
                listed = msgspec.json.decode(objects.read(entry.oid, "blob"), type=list[tuple[object, ...]])
                rows = {str(name): msgspec.convert(rest, Fact) for name, *rest in listed}
            except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
                raise Broken(f"the facts {entry.oid} cannot be understood: {error}") from error
    return rows, below


class Item(NamedTuple):
    """One name in a folder; for a folder also the two trees that go on below it."""

    name: str
    git_mode: str
    oid: str
    entry: Entry
    facts: str | None


def listing(objects: Objects, path: str, work: str, facts: str | None) -> list[Item]:
    """What a folder held. git keeps no empty folders, so those are known by their facts alone."""
    rows, below = facts_of(objects, facts)
    found = [(i.name, i.mode, i.oid) for i in objects.tree(work)]
    held = {name for name, _, _ in found}
    for shown_name, fact in rows.items():
        if stat.S_ISDIR(fact.mode) and (name := unshown(shown_name)) not in held:
            found.append((name, "40000", EMPTY_TREE))
    items = []
    for name, mode, oid in found:
        fact = rows.get(shown(name), Fact(_MODES.get(mode, 0o100644), 0))
        items.append(Item(name, mode, oid, _entry(child(path, name), mode, oid, fact), below.get(name)))
    return items


def entries(objects: Objects, where: Sides) -> Iterator[tuple[str, Entry]]:
    """Every stored path as `os` spells it, folders before what is in them."""
    queue: list[tuple[str, str, str | None]] = [("", where.work, where.facts)]
    while queue:
        path, work, facts = queue.pop()
        for item in listing(objects, path, work, facts):
            here = child(path, item.name)
            yield here, item.entry
            if item.entry.kind is EntryKind.FOLDER:
                queue.append((here, item.oid, item.facts))


def _entry(path: str, git_mode: str, oid: str, fact: Fact) -> Entry:
    if fact.sha256 is not None and stat.S_ISREG(fact.mode):
        return Entry(shown(path), EntryKind.ARTIFACT, fact.mode, fact.mtime_ns, fact.sha256, fact.size)
    return Entry(shown(path), _KINDS.get(git_mode, EntryKind.FILE), fact.mode, fact.mtime_ns, oid)


def type_of(git_mode: str) -> int:
    """The `S_IFMT` part that facts beside this mode must have."""
    return stat.S_IFMT(_MODES.get(git_mode, 0o100644))
