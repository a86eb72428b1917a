"""What changed from one snapshot to another, as plain values."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from sessions.snapshots import tree
from sessions.snapshots.names import child, shown
from sessions.snapshots.objects import Objects
from sessions.snapshots.tally import listable
from sessions.snapshots.values import (
    ChangeKind,
    Entry,
    EntryKind,
    FileChange,
    SkipKind,
    SkippedPath,
    TreeDiff,
)

_READABLE = 1 << 20  # bytes of a file that still gets a patch
_PATCHES = 300
_PATCH_CHARACTERS = 4 << 20  # of all patches; each may take six bytes in JSON

_Place = tuple[str, str] | None
"""A work tree and the facts tree beside it ("" where there is none)."""


@dataclass(frozen=True, slots=True)
class _Pair:
    path: str
    old: Entry | None
    new: Entry | None


def compare(objects: Objects, old: str, new: str) -> TreeDiff:
    """Every file, link and folder that differs between two commits; folders only where they appear or go away."""
    left, right = tree.sides(objects, old), tree.sides(objects, new)
    pairs = sorted(
        _pairs(objects, (left.work, left.facts), (right.work, right.facts)), key=lambda p: shown(p.path)
    )
    looked_at = listable(shown(pair.path) for pair in pairs)
    changes: list[FileChange] = []
    truncated = patched = 0
    for pair in pairs[:looked_at]:
        room = len(changes) - truncated < _PATCHES and patched < _PATCH_CHARACTERS
        change, cut = _change(objects, pair, patch=room)
        changes.append(change)
        truncated += cut
        patched += len(change.patch or "")
    changes += _unstored(tree.manifest(objects, left).skipped, tree.manifest(objects, right).skipped)
    changes.sort(key=lambda c: c.path)
    listed = listable(change.path for change in changes)
    unlisted = len(pairs) - looked_at + len(changes) - listed
    return TreeDiff(old, new, tuple(changes[:listed]), truncated, unlisted)


def _pairs(objects: Objects, old: _Place, new: _Place) -> Iterator[_Pair]:
    queue: list[tuple[str, _Place, _Place]] = [("", old, new)]
    while queue:
        path, old, new = queue.pop()
        before, after = _listing(objects, path, old), _listing(objects, path, new)
        for name in sorted(before.keys() | after.keys()):
            (was, was_place), (now, now_place) = before.get(name, (None, None)), after.get(name, (None, None))
            if was_place != now_place:
                queue.append((child(path, name), was_place, now_place))
            if _differ(was, now):
                yield _Pair(child(path, name), was, now)


def _listing(objects: Objects, path: str, place: _Place) -> dict[str, tuple[Entry, _Place]]:
    if place is None:
        return {}
    return {
        item.name: (item.entry, (item.oid, item.facts or "") if item.entry.kind is EntryKind.FOLDER else None)
        for item in tree.listing(objects, path, place[0], place[1] or None)
    }


def _differ(old: Entry | None, new: Entry | None) -> bool:
    """Times alone are no change, and a folder is no more than its name and mode."""
    if old is None or new is None:
        return True
    if old.kind is EntryKind.FOLDER and new.kind is EntryKind.FOLDER:
        return old.mode != new.mode
    return (old.digest, old.mode) != (new.digest, new.mode)


def _change(objects: Objects, pair: _Pair, *, patch: bool) -> tuple[FileChange, bool]:
    old, new = pair.old, pair.new
    sizes = [_size(objects, e) for e in (old, new)]
    content = (old and old.digest) != (new and new.digest)
    blobs = [e for e in (old, new) if e is not None]
    large = any(e.kind is EntryKind.ARTIFACT for e in blobs)
    binary = readable = False
    if content and not large and all(e.kind is EntryKind.FILE for e in blobs):
        readable = all((s or 0) <= _READABLE for s in sizes)
        binary = any(b"\0" in objects.read(e.digest, "blob")[:8000] for e in blobs)
    text = None
    wanted = readable and not binary
    if wanted and patch:
        text = _patch(objects, old, new)
    change = FileChange(
        path=shown(pair.path),
        kind=_kind(old, new),
        old_size=sizes[0],
        new_size=sizes[1],
        old_digest=_digest(old),
        new_digest=_digest(new),
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
        is_binary=binary,
        is_large=large,
        patch=text,
    )
    return change, wanted and not patch


def _patch(objects: Objects, old: Entry | None, new: Entry | None) -> str:
    if old and new:
        return objects.patch(old.digest, new.digest)
    whole = old or new
    assert whole is not None
    text = objects.read(whole.digest, "blob").decode("utf-8", "backslashreplace")
    lines = text.split("\n")
    ended = lines[-1] == ""
    lines = lines[:-1] if ended else lines
    if not lines:
        return ""
    sign, span = ("-", f"@@ -1,{len(lines)} +0,0 @@") if old else ("+", f"@@ -0,0 +1,{len(lines)} @@")
    body = "".join(f"{sign}{line}\n" for line in lines)
    return f"{span}\n{body}" + ("" if ended else "\\ No newline at end of file\n")


def _kind(old: Entry | None, new: Entry | None) -> ChangeKind:
    if old is None:
        return ChangeKind.ADDED
    if new is None:
        return ChangeKind.REMOVED
    if stat.S_IFMT(old.mode) != stat.S_IFMT(new.mode):
        return ChangeKind.TYPE_CHANGED
    return ChangeKind.MODIFIED


def _size(objects: Objects, entry: Entry | None) -> int | None:
    if entry is None or entry.kind is EntryKind.FOLDER:
        return None
    return entry.size if entry.kind is EntryKind.ARTIFACT else objects.size(entry.digest)


def _digest(entry: Entry | None) -> str | None:
    if entry is None or entry.kind is EntryKind.FOLDER:
        return None
    return f"{'sha256' if entry.kind is EntryKind.ARTIFACT else 'git'}:{entry.digest}"


def _unstored(old: tuple[SkippedPath, ...], new: tuple[SkippedPath, ...]) -> list[FileChange]:
    """Files too large to be kept show in a diff by the size and time that were."""
    was, now = ({s.path: s for s in side if s.kind is SkipKind.HUGE} for side in (old, new))
    changes = []
    for path in was.keys() | now.keys():
        left, right = was.get(path), now.get(path)
        if left and right and (left.size, left.mtime_ns) == (right.size, right.mtime_ns):
            continue
        kind = ChangeKind.MODIFIED if left and right else ChangeKind.ADDED if right else ChangeKind.REMOVED
        changes.append(
            FileChange(
                path,
                kind,
                left.size if left else None,
                right.size if right else None,
                f"sha256:{left.sha256}" if left and left.sha256 else None,
                f"sha256:{right.sha256}" if right and right.sha256 else None,
                is_binary=True,
                is_large=True,
            )
        )
    return changes
