"""Every object of a snapshot read and hashed again, and the three parts of it held against each other."""

from __future__ import annotations

import stat
from typing import NamedTuple

from sessions.snapshots import tree
from sessions.snapshots.artifacts import Artifacts, pointer
from sessions.snapshots.names import child, shown
from sessions.snapshots.objects import Broken, Objects, blob_id, parse_commit
from sessions.snapshots.values import Entry, EntryKind, Manifest


class _Folder(NamedTuple):
    """A folder that holds: its own files, their bytes, and (name, tree, facts) of the folders in it."""

    files: int
    bytes: int
    below: tuple[tuple[str, str, str | None], ...]


class Verifier:
    """Remembers what it has hashed, so that three hundred snapshots of one tree cost little more than one."""

    def __init__(self, objects: Objects, artifacts: Artifacts) -> None:
        self._objects, self._artifacts = objects, artifacts
        self._sound: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._unsound: dict[str, str] = {}
        self._folders: dict[tuple[str, str | None], _Folder] = {}
        self._judged: dict[str, str | None] = {}

    def problems(self, number: int, commit: str, parent: str | None) -> list[str]:
        """In words, each with the snapshot and the path; empty when all is well."""
        found: list[str] = []
        label = f"snapshot {number}"
        try:
            _, parents = parse_commit(self._checked(commit, "commit"))
            expected = [parent] if parent else []
            if parents != expected:
                found.append(f"{label}: its parent is {parents or 'none'} where {expected or 'none'} is due")
            where = tree.sides(self._objects, commit)
            self._checked(where.manifest, "blob")
            manifest = tree.manifest(self._objects, where)
        except Broken as error:
            return [*found, f"{label}: {error}"]
        if manifest.number != number:
            found.append(f"{label}: its manifest speaks of snapshot {manifest.number}")
        files, size = self._walk(label, where, found)
        if not found and (files, size) != (manifest.files, manifest.bytes):
            found.append(
                f"{label}: holds {files} files with {size} bytes where its manifest counts "
                f"{manifest.files} with {manifest.bytes}"
            )
        self._artifacts_of(label, manifest, found)
        return found

    def _walk(self, label: str, where: tree.Sides, found: list[str]) -> tuple[int, int]:
        files = total = 0
        queue: list[tuple[str, str, str | None]] = [("", where.work, where.facts)]
        while queue:
            path, work, facts = queue.pop()
            folder = self._folders.get((work, facts))
            if folder is None:
                before = len(found)
                folder = self._folder(label, path, work, facts, found)
                if len(found) == before:
                    self._folders[work, facts] = folder
            files += folder.files
            total += folder.bytes
            queue.extend((child(path, name), oid, below) for name, oid, below in folder.below)
        return files, total

    def _folder(self, label: str, path: str, work: str, facts: str | None, found: list[str]) -> _Folder:
        """Hash one folder and the files in it; what does not hold is added to `found`."""
        try:
            self._checked(work, "tree")
            self._check_facts(facts)
            items = tree.listing(self._objects, path, work, facts)
        except Broken as error:
            found.append(f"{label}: folder {shown(path) or '.'}: {error}")
            return _Folder(0, 0, ())
        files = total = 0
        below = []
        for item in items:
            here = child(path, item.name)
            if item.entry.kind is EntryKind.FOLDER:
                below.append((item.name, item.oid, item.facts))
                continue
            try:
                blob = self._size(item.oid)
            except Broken as error:
                found.append(f"{label}: {shown(here)}: {error}")
                continue
            if stat.S_IFMT(item.entry.mode) != tree.type_of(item.git_mode):
                found.append(f"{label}: {shown(here)}: its facts and its tree disagree about what it is")
            if item.entry.kind is EntryKind.ARTIFACT and item.oid != _pointer_id(item.entry):
                found.append(f"{label}: {shown(here)}: its pointer and its facts name different artifacts")
            files += 1
            total += item.entry.size or 0 if item.entry.kind is EntryKind.ARTIFACT else blob
        return _Folder(files, total, tuple(below))

    def _check_facts(self, facts: str | None) -> None:
        if facts is None:
            return
        self._checked(facts, "tree")
        for item in self._objects.tree(facts):
            if item.mode != "40000":
                self._checked(item.oid, "blob")

    def _checked(self, oid: str, kind: str) -> bytes:
        return self._objects.read(oid, kind) if oid in self._sound else self._hash(oid, kind)

    def _hash(self, oid: str, kind: str) -> bytes:
        if oid in self._unsound:
            raise Broken(self._unsound[oid])
        try:
            data = self._objects.checked(oid, kind)
        except Broken as error:
            self._unsound[oid] = str(error)
            raise
        self._sound.add(oid)
        self._sizes[oid] = len(data)
        return data

    def _size(self, oid: str) -> int:
        if oid not in self._sizes:
            self._hash(oid, "blob")
        return self._sizes[oid]

    def _artifacts_of(self, label: str, manifest: Manifest, found: list[str]) -> None:
        for artifact in manifest.artifacts:
            if artifact.sha256 not in self._judged:
                self._judged[artifact.sha256] = self._artifacts.problem(artifact.sha256, artifact.size)
            problem = self._judged[artifact.sha256]
            if problem:
                found.append(f"{label}: {artifact.path}: {problem}")


def _pointer_id(entry: Entry) -> str:
    return blob_id(pointer(entry.digest, entry.size or 0))
