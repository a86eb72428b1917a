"""One pass over a working tree that only looks: what is there, what is left out, what cannot be entered."""

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from sessions.snapshots.folders import INODE, Key, is_folder, key_of, open_root, opened
from sessions.snapshots.names import child, shown
from sessions.snapshots.rules import Rules
from sessions.snapshots.values import ExcludedFolder, SkipKind, SkippedPath

OWN_RECORD = "the record itself"
LONGEST_PATH = 4 * 4096
"""Bytes, four times what a system call takes; each folder's path is kept, so that deeper ones would fill the memory."""

Stored = tuple[str, ...]
"""(git id,) of a file or link; (SHA-256, size in decimal) of an artifact."""


@dataclass(slots=True)
class Folder:
    """A folder as last seen, and where its contents are stored. Compared with the next look at it."""

    entries: dict[str, Key]
    folders: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()
    """Names whose next look must read them again, whatever their key says."""
    files: int = 0
    bytes: int = 0
    artifacts: dict[str, Stored] = field(default_factory=dict)


@dataclass(slots=True)
class Walked:
    root_inode: int
    device: int
    folders: dict[str, Folder] = field(default_factory=dict)
    """Breadth first, the top as `""`. An untouched folder is the same object as in `before`."""
    inodes: dict[str, int] = field(default_factory=dict)
    hollow: dict[str, SkippedPath] = field(default_factory=dict)
    """Folders kept as empty ones, because what is in them could not or may not be read."""
    gone: set[str] = field(default_factory=set)
    excluded: list[tuple[str, str, Key]] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop looking."""

    deadline: float = float("inf")
    max_files: int = 1 << 62
    clock: Callable[[], float] = monotonic
    own: tuple[int, int] | None = None
    """Device and inode of the record's own folder, should it lie in the working tree."""


def walk(
    root: int, rules: Rules, before: Mapping[str, Folder] | None = None, limits: Limits | None = None
) -> Walked:
    """Look at everything below the open folder `root`, never crossing into another file system."""
    limits = limits or Limits()
    top = os.fstat(root)
    seen = Walked(root_inode=top.st_ino, device=top.st_dev)
    queue: deque[tuple[str, int]] = deque([("", top.st_ino)])
    files = 0
    while queue:
        path, inode = queue.popleft()
        if path and (seen.device, inode) == limits.own:
            seen.excluded.append((path, OWN_RECORD, (0, inode, 0, 0, 0)))
            continue
        if limits.clock() > limits.deadline:
            seen.hollow[path] = SkippedPath(
                shown(path) + "/", "not looked into: the snapshot's time was up", SkipKind.TIME
            )
            continue
        if len(path) > LONGEST_PATH // 4 and len(os.fsencode(path)) > LONGEST_PATH:
            reason = f"not looked into: its path has more than {LONGEST_PATH} bytes"
            seen.hollow[path] = SkippedPath(shown(path) + "/", reason, SkipKind.PATH)
            continue
        folder = _look(root, path, inode, rules, (before or {}).get(path), seen)
        if folder is None:
            continue
        inside = len(folder.entries) - len(folder.folders)
        if files + inside > limits.max_files and path:
            seen.hollow[path] = SkippedPath(
                shown(path) + "/",
                f"{inside} files and everything in the folders below not stored: "
                f"a snapshot holds at most {limits.max_files} files",
                SkipKind.COUNT,
            )
            continue
        files += inside
        seen.folders[path] = folder
        seen.inodes[path] = inode
        for name in folder.folders:
            queue.append((child(path, name), folder.entries[name][INODE]))
        if ".git" in folder.entries:
            seen.nested.append(path)
    return seen


def _look(root: int, path: str, inode: int, rules: Rules, old: Folder | None, seen: Walked) -> Folder | None:
    """The folder at `path`; None where it is excluded or cannot be entered, which is noted in `seen`."""
    try:
        with opened(root, path, inode) as fd:
            if path and os.fstat(fd).st_dev != seen.device:
                reason = "another file system is mounted here"
                seen.hollow[path] = SkippedPath(shown(path) + "/", reason, SkipKind.MOUNT)
                return None
            entries = _entries(fd)
            marked = rules.marked(fd, entries) if path else None
    except (FileNotFoundError, NotADirectoryError):
        seen.gone.add(path)
        return None
    except OSError as error:
        reason = f"cannot be entered: {error.strerror or error}"
        seen.hollow[path] = SkippedPath(shown(path) + "/", reason, SkipKind.UNREADABLE)
        return None
    if marked:
        seen.excluded.append((path, marked, (0, inode, 0, 0, 0)))
        return None
    if old is not None and old.entries == entries:
        folder = old
    else:
        left_out = rules.left_out(path, entries)
        below = tuple(n for n, k in entries.items() if is_folder(k) and n not in left_out)
        folder = Folder(entries=entries, folders=below, left_out=left_out)
    for name, pattern in folder.left_out.items():
        seen.excluded.append((child(path, name), pattern, folder.entries[name]))
    return folder


def _entries(fd: int) -> dict[str, Key]:
    with os.scandir(fd) as found:
        entries = list(found)
    try:
        return {e.name: key_of(e.stat(follow_symlinks=False)) for e in entries}
    except OSError:
        return dict(_one_by_one(entries))


def _one_by_one(entries: list[os.DirEntry[str]]) -> list[tuple[str, Key]]:
    """As `_entries`, for a folder from which something is just being removed, or that may be listed and not searched."""
    found = []
    for entry in entries:
        try:
            found.append((entry.name, key_of(entry.stat(follow_symlinks=False))))
        except FileNotFoundError:
            continue
    return found


def count_excluded(
    root: int, excluded: list[tuple[str, str, Key]], seconds: float, clock: Callable[[], float]
) -> list[ExcludedFolder]:
    """How much was left out where; once `seconds` are spent the counts are lower bounds and say so."""
    deadline = clock() + seconds
    found = []
    for path, pattern, key in excluded:
        if key[0] and not is_folder(key):
            found.append(ExcludedFolder(shown(path), pattern, 1, key[2]))
            continue
        files, size, whole = _count_below(root, path, key[INODE], deadline, clock)
        found.append(ExcludedFolder(shown(path), pattern, files, size, whole))
    return found


def _count_below(
    root: int, path: str, inode: int, deadline: float, clock: Callable[[], float]
) -> tuple[int, int, bool]:
    queue = deque([(path, inode)])
    files = size = 0
    whole = True
    while queue:
        here, inode = queue.popleft()
        if clock() > deadline:
            return files, size, False
        try:
            with opened(root, here, inode) as fd:
                entries = _entries(fd)
        except OSError:
            whole = False
            continue
        for name, key in entries.items():
            if is_folder(key):
                queue.append((f"{here}/{name}", key[INODE]))
            else:
                files += 1
                size += key[2]
    return files, size, whole


def look(
    work_tree: str | os.PathLike[str], rules: Rules, before: Mapping[str, Folder] | None = None
) -> Walked:
    """`walk`, from a path."""
    root = open_root(work_tree)
    try:
        return walk(root, rules, before)
    finally:
        os.close(root)
