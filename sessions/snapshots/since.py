"""What changed in the working tree since a snapshot, found by looking and rarely by reading."""

import stat

from sessions.snapshots import tree
from sessions.snapshots.contents import TooLarge, read_file
from sessions.snapshots.folders import MODE, MTIME, SIZE, Key, is_folder, opened
from sessions.snapshots.memory import Memory
from sessions.snapshots.names import child, shown, unshown
from sessions.snapshots.objects import Objects, blob_id
from sessions.snapshots.rules import Rules
from sessions.snapshots.values import ChangeKind, EntryKind, PathChange
from sessions.snapshots.walk import Limits, Walked, walk

_READ_TO_BE_SURE = 1 << 20


class _Known(dict[str, tuple[int, int, str | None]]):
    """Path to (mode, mtime, git id where it is a small file or link)."""


def changed(
    root: int, rules: Rules, objects: Objects, commit: str, memory: Memory | None
) -> tuple[PathChange, ...]:
    """Files and links added, removed or modified since `commit`; a file merely touched is read to be sure."""
    record = objects.git_dir.parent.stat()
    limits = Limits(own=(record.st_dev, record.st_ino))
    walked = walk(root, rules, memory.folders if memory else None, limits)
    known = _remembered(memory) if memory and memory.commit == commit else _recorded(objects, commit)
    same = _untouched(walked, memory) if memory and memory.commit == commit else set()
    found = []
    for path, folder in walked.folders.items():
        if path in same:
            continue
        for name, key in folder.entries.items():
            if (
                is_folder(key)
                or name in folder.left_out
                or not (stat.S_ISREG(key[MODE]) or stat.S_ISLNK(key[MODE]))
            ):
                continue
            sure = not (memory and path in memory.folders and name in memory.folders[path].unsure)
            kind = _judge(root, walked, path, name, key, known.get(child(path, name)), sure=sure)
            if kind:
                found.append(PathChange(shown(child(path, name)), kind, key[SIZE]))
    found += [PathChange(shown(path), ChangeKind.REMOVED) for path in known if _is_gone(path, walked)]
    return tuple(sorted(found, key=lambda c: c.path))


def _remembered(memory: Memory) -> _Known:
    known = _Known()
    for path, folder in memory.folders.items():
        for name, stored in folder.stored.items():
            key = folder.entries[name]
            known[child(path, name)] = (key[MODE], key[MTIME], stored[0] if len(stored) == 1 else None)
    return known


def _recorded(objects: Objects, commit: str) -> _Known:
    known = _Known()
    for path, entry in tree.entries(objects, tree.sides(objects, commit)):
        if entry.kind is not EntryKind.FOLDER:
            oid = None if entry.kind is EntryKind.ARTIFACT else entry.digest
            known[path] = (entry.mode, entry.mtime_ns, oid)
    for skipped in tree.manifest(objects, tree.sides(objects, commit)).skipped:
        if skipped.mtime_ns is not None:
            known.setdefault(unshown(skipped.path), (0, skipped.mtime_ns, None))
    return known


def _untouched(walked: Walked, memory: Memory) -> set[str]:
    return {p for p, f in walked.folders.items() if memory.folders.get(p) is f and not f.unsure}


def _judge(
    root: int,
    walked: Walked,
    path: str,
    name: str,
    key: Key,
    was: tuple[int, int, str | None] | None,
    *,
    sure: bool,
) -> ChangeKind | None:
    if was is None:
        return ChangeKind.ADDED
    mode, mtime_ns, oid = was
    if mode and stat.S_IFMT(mode) != stat.S_IFMT(key[MODE]):
        return ChangeKind.TYPE_CHANGED
    if mode and mode != key[MODE]:
        return ChangeKind.MODIFIED
    if oid is None or not stat.S_ISREG(key[MODE]) or key[SIZE] > _READ_TO_BE_SURE:
        return ChangeKind.MODIFIED if mtime_ns != key[MTIME] else None
    if mtime_ns == key[MTIME] and sure:
        return None
    try:
        with opened(root, path, walked.inodes[path]) as fd:
            same = blob_id(read_file(fd, name, _READ_TO_BE_SURE, lambda _: None).data) == oid
    except (OSError, TooLarge):
        return ChangeKind.MODIFIED
    return None if same else ChangeKind.MODIFIED


def _is_gone(path: str, walked: Walked) -> bool:
    """Absent from a folder that was looked into; what lies in one that could not be is not judged."""
    folder, _, name = path.rpartition("/")
    if folder in walked.folders:
        return name not in walked.folders[folder].entries
    return not any(_within(path, hollow) for hollow in walked.hollow)


def _within(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")
