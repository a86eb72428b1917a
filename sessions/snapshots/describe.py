"""In what a snapshot differs from its parent commit, in the words of `git fast-import`."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from sessions.snapshots.artifacts import pointer
from sessions.snapshots.folders import MODE, MTIME, is_folder
from sessions.snapshots.names import ENTRIES, child, shown, to_tree, tree_path
from sessions.snapshots.objects import blob_id
from sessions.snapshots.walk import Folder, Walked
from sessions.snapshots.writing import Import


@dataclass(slots=True)
class Changes:
    """Paths to delete, blobs to place, and the facts of every folder that is not as it was."""

    deleted: list[bytes] = field(default_factory=list)
    placed: list[tuple[bytes, str, bytes]] = field(default_factory=list)
    facts: list[tuple[bytes, bytes]] = field(default_factory=list)

    def write(self, writer: Import) -> None:
        """Deletions first, so that a file may become a folder."""
        for path in sorted(self.deleted):
            writer.delete(path)
        for mode, oid, path in self.placed:
            writer.place(mode, oid, path)
        for data, path in self.facts:
            writer.place_text(data, path)


def changes(before: Mapping[str, Folder], folders: Mapping[str, Folder], walked: Walked) -> Changes:
    """From `before`, which is what the parent commit says, to `folders`."""
    found = Changes()
    left = before.keys() - walked.folders.keys()
    parents = {path.rpartition("/")[0] for path in left if path}
    for path, folder in folders.items():
        if folder is not before.get(path) or path in parents:
            _describe(found, path, before.get(path), folder, walked)
    for path in left:
        found.deleted += [b"work/" + tree_path(path), b"facts/" + tree_path(path)]
    return found


def _describe(found: Changes, path: str, old: Folder | None, folder: Folder, walked: Walked) -> None:
    was = old.stored if old else {}
    base = tree_path(path) + b"/" if path else b""
    rows: list[tuple[object, ...]] = []
    for name in sorted(folder.entries):
        key = folder.entries[name]
        row = (shown(name), key[MODE], key[MTIME])
        if is_folder(key):
            below = child(path, name)
            if below in walked.folders or below in walked.hollow:
                rows.append(row)
            continue
        stored = folder.stored.get(name)
        if stored is None:
            continue
        rows.append(row if len(stored) == 1 else (*row, stored[0], int(stored[1])))
        mode = git_mode(key[MODE])
        if old is None or was.get(name) != stored or git_mode(old.entries[name][MODE]) != mode:
            oid = stored[0] if len(stored) == 1 else blob_id(pointer(stored[0], int(stored[1])))
            found.placed.append((mode, oid, b"work/" + base + to_tree(os.fsencode(name))))
    for name in was.keys() - folder.stored.keys():
        found.deleted.append(b"work/" + base + to_tree(os.fsencode(name)))
    found.facts.append((msgspec.json.encode(rows), b"facts/" + base + ENTRIES.encode()))


def git_mode(mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return b"120000"
    return b"100755" if mode & 0o100 else b"100644"
