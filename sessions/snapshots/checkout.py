"""A snapshot back as files, byte for byte, in a folder of its own."""

import errno
import os
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from sessions.snapshots import tree
from sessions.snapshots.artifacts import Artifacts
from sessions.snapshots.folders import open_folder, open_root
from sessions.snapshots.names import child, shown
from sessions.snapshots.objects import Objects
from sessions.snapshots.values import CheckoutReport, Entry, EntryKind, Missing, SkipKind, SnapshotError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What other systems say to names and links that Linux has no quarrel with, or to two that differ in case.
_UNNAMEABLE = {errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG, errno.EPERM, errno.EOPNOTSUPP}
_SET_ID = stat.S_ISUID | stat.S_ISGID


@dataclass(slots=True)
class _Tally:
    files: int = 0
    bytes: int = 0
    cloned: int = 0
    missing: list[Missing] = field(default_factory=list)
    stripped: list[str] = field(default_factory=list)
    folders: list[tuple[str, int, int]] = field(default_factory=list)


def check_out(objects: Objects, artifacts: Artifacts, commit: str, into: Path) -> CheckoutReport:
    """Everything the snapshot stored, under `into`, which must be empty or not yet exist."""
    began = perf_counter()
    where = tree.sides(objects, commit)
    manifest = tree.manifest(objects, where)
    root = _open_empty(into, manifest.number)
    tally = _Tally()
    try:
        _fill(objects, artifacts, root, where, tally)
        for path, mode, mtime_ns in reversed(tally.folders):
            _finish_folder(root, path, mode, mtime_ns)
    finally:
        os.close(root)
    lost = [s for s in manifest.skipped if s.kind.loses_content and s.kind is not SkipKind.TORN]
    return CheckoutReport(
        commit=commit,
        files=tally.files,
        folders=len(tally.folders),
        bytes=tally.bytes,
        cloned=tally.cloned,
        missing=(*tally.missing, *(Missing(s.path, s.reason) for s in lost)),
        stripped=tuple(tally.stripped),
        torn=tuple(s.path for s in manifest.skipped if s.kind is SkipKind.TORN),
        seconds=perf_counter() - began,
    )


def _open_empty(into: Path, number: int) -> int:
    try:
        into.mkdir(parents=True, exist_ok=True)
        why = "it is not empty" if any(into.iterdir()) else None
        if why is None:
            return open_root(into)
    except OSError as error:
        why = error.strerror or str(error)
    raise SnapshotError(f"cannot restore snapshot {number} into {into}: {why}; name an empty folder")


def remove_checkout(folder: Path) -> None:
    """Delete a restored snapshot and what was made in it, however deep its folders and whatever their modes.

    The system's own tools do it: `shutil.rmtree` gives up on a thousand folders in each other.
    """
    if not _quietly("rm", "-rf", "--", str(folder)):
        _quietly("chmod", "-R", "u+rwX", "--", str(folder))
        _quietly("rm", "-rf", "--", str(folder))


def _quietly(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _fill(objects: Objects, artifacts: Artifacts, root: int, where: tree.Sides, tally: _Tally) -> None:
    queue: list[tuple[str, str, str | None]] = [("", where.work, where.facts)]
    while queue:
        path, work, facts = queue.pop()
        fd = open_folder(root, path)
        try:
            for item in tree.listing(objects, path, work, facts):
                try:
                    if item.entry.kind is not EntryKind.FOLDER:
                        _restore(objects, artifacts, fd, item.name, item.entry, tally)
                        continue
                    os.mkdir(item.name, 0o700, dir_fd=fd)
                except OSError as error:
                    if error.errno not in _UNNAMEABLE:
                        raise
                    reason = f"the file system under {shown(path) or '.'} cannot hold it: {error.strerror}"
                    tally.missing.append(Missing(item.entry.path, reason))
                    continue
                here = child(path, item.name)
                tally.folders.append((here, item.entry.mode, item.entry.mtime_ns))
                queue.append((here, item.oid, item.facts))
        finally:
            os.close(fd)


def _restore(objects: Objects, artifacts: Artifacts, fd: int, name: str, entry: Entry, tally: _Tally) -> None:
    times = (entry.mtime_ns, entry.mtime_ns)
    if entry.kind is EntryKind.LINK:
        target = objects.read(entry.digest, "blob")
        os.symlink(target, os.fsencode(name), dir_fd=fd)
        os.utime(name, ns=times, dir_fd=fd, follow_symlinks=False)
        tally.files += 1
        return
    if entry.kind is EntryKind.ARTIFACT and not artifacts.has(entry.digest):
        gone = (
            "was evicted to make room"
            if entry.digest in artifacts.evicted()
            else "is missing from the record"
        )
        tally.missing.append(
            Missing(entry.path, f"its content, {entry.size} bytes, SHA-256 {entry.digest}, {gone}")
        )
        return
    file = os.open(name, _NEW, 0o600, dir_fd=fd)
    try:
        if entry.kind is EntryKind.ARTIFACT:
            tally.cloned += artifacts.give(entry.digest, file)
            tally.bytes += entry.size or 0
        else:
            data = objects.read(entry.digest, "blob")
            _write(file, data)
            tally.bytes += len(data)
        if entry.mode & _SET_ID:
            tally.stripped.append(entry.path)
        os.fchmod(file, stat.S_IMODE(entry.mode) & ~_SET_ID)
        os.utime(file, ns=times)
    finally:
        os.close(file)
    tally.files += 1


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _finish_folder(root: int, path: str, mode: int, mtime_ns: int) -> None:
    """Last and from the inside out: a read-only folder can be filled only before it is one."""
    fd = open_folder(root, path)
    try:
        os.fchmod(fd, stat.S_IMODE(mode) & ~stat.S_ISUID)
        os.utime(fd, ns=(mtime_ns, mtime_ns))
    finally:
        os.close(fd)
