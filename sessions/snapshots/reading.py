"""Storing what a working tree holds: looking, reading what changed, keeping large files last."""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic, sleep, time_ns

from sessions.snapshots.artifacts import Artifacts, Refused, pointer
from sessions.snapshots.contents import NotAFile, TooLarge, open_regular, read_file
from sessions.snapshots.folders import CTIME, MODE, MTIME, SIZE, Key, is_folder, key_of, opened
from sessions.snapshots.names import child, shown
from sessions.snapshots.objects import blob_id
from sessions.snapshots.room import Room
from sessions.snapshots.rules import Rules
from sessions.snapshots.values import SkipKind, SkippedPath, SnapshotPolicy
from sessions.snapshots.walk import Folder, Limits, Stored, Walked, walk
from sessions.snapshots.writing import Import

_RACY_NS = 100_000_000
"""A file changed this shortly before we looked may change again without its times showing it."""
_SECOND_LOOKS = 2
_NO_KEY: Key = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tools:
    """Everything from outside that a snapshot needs, so that tests can bring their own."""

    clock: Callable[[], float] = monotonic
    wall_ns: Callable[[], int] = time_ns
    sleep: Callable[[float], None] = sleep


@dataclass(frozen=True, slots=True)
class Places:
    """Where things go."""

    writer: Import
    artifacts: Artifacts
    room: Room


class Reader:
    """One working tree, read once for one snapshot. `known` is where untouched files are stored already."""

    def __init__(
        self, root: int, policy: SnapshotPolicy, places: Places, known: Mapping[str, Folder], tools: Tools
    ) -> None:
        self.root, self.policy, self.tools = root, policy, tools
        self.writer, self.artifacts, self.room = places.writer, places.artifacts, places.room
        self.known = known
        self.deadline = tools.clock() + policy.max_seconds
        self.racy_from = tools.wall_ns() - _RACY_NS
        self._start_over()

    def _start_over(self) -> None:
        self.skipped: list[SkippedPath] = []
        self.files = self.bytes = 0
        self.large: list[tuple[str, str, Key, Folder]] = []

    def read(self) -> tuple[Walked, dict[str, Folder]]:
        """Everything there is, stored; looking again where something went away under our hands."""
        walked, folders = self._look_and_read()
        for _ in range(_SECOND_LOOKS):
            if not walked.gone and not any(s.kind is SkipKind.VANISHED for s in self.skipped):
                break
            # What vanished may only have been renamed, to a name we had already passed.
            self.known = folders
            self._start_over()
            walked, folders = self._look_and_read()
        return walked, folders

    def _look_and_read(self) -> tuple[Walked, dict[str, Folder]]:
        record = self.artifacts.folder.parent.stat()
        own = (record.st_dev, record.st_ino)
        limits = Limits(self.deadline, self.policy.max_files, self.tools.clock, own)
        walked = walk(self.root, Rules(self.policy.excludes), self.known, limits)
        if "" not in walked.folders:
            lost = walked.hollow.get("")
            raise NotADirectoryError(lost.reason if lost else "the working tree is gone")
        self.skipped.extend(walked.hollow.values())
        folders = self._unchanged(walked)
        for path, folder in walked.folders.items():
            if path not in folders:
                folders[path] = self._read_folder(path, walked.inodes[path], folder)
        self._keep_large(walked)
        return walked, folders

    def _unchanged(self, walked: Walked) -> dict[str, Folder]:
        same = {}
        for path, folder in walked.folders.items():
            if folder is not self.known.get(path) or folder.unsure:
                continue
            if folder.artifacts and not all(self.artifacts.has(a[0]) for a in folder.artifacts.values()):
                continue
            same[path] = folder
            self.files += folder.files
            self.bytes += folder.bytes
            self.room.in_use(a[0] for a in folder.artifacts.values())
        return same

    # -- files and links ----------------------------------------------------------------------------------

    def _read_folder(self, path: str, inode: int, seen: Folder) -> Folder:
        """The folder with every file's contents stored, but for large ones, which wait until all others are safe."""
        old = self.known.get(path)
        new = Folder(dict(seen.entries), seen.folders, seen.left_out)
        fd = -1
        unsure = set()
        try:
            for name, key in seen.entries.items():
                if is_folder(key) or name in seen.left_out:
                    continue
                known = _known(old, name, key)
                if known is not None and (len(known) == 1 or self.artifacts.has(known[0])):
                    self._count(new, name, known, key)
                    continue
                if fd < 0:
                    fd = self._open(path, inode)
                if not self._read(fd, path, name, key, old.stored.get(name) if old else None, new):
                    unsure.add(name)
        except FileNotFoundError:
            self._skip(path, SkipKind.VANISHED, "removed while the snapshot was being taken", _NO_KEY)
            unsure.update(seen.entries.keys() - new.stored.keys())
        except OSError as error:
            self._skip(
                f"{path}/", SkipKind.UNREADABLE, f"cannot be entered: {error.strerror or error}", _NO_KEY
            )
            unsure.update(seen.entries.keys() - new.stored.keys())
        finally:
            if fd >= 0:
                os.close(fd)
        new.unsure = frozenset(unsure)
        return new

    def _open(self, path: str, inode: int) -> int:
        with opened(self.root, path, inode) as fd:
            return os.dup(fd)

    def _read(self, fd: int, path: str, name: str, key: Key, was: Stored | None, new: Folder) -> bool:
        """Store one file or link, last seen as `was`; false where the next snapshot has to look at it again."""
        where = child(path, name)
        try:
            if stat.S_ISLNK(key[MODE]):
                return self._store_link(fd, name, key, new)
            if not stat.S_ISREG(key[MODE]):
                self._skip(where, SkipKind.SPECIAL, f"{_special(key[MODE])}: listed, not opened", key)
                return False
            self._affordable(key)
            if key[SIZE] > self.policy.artifact_threshold:
                self.large.append((path, name, key, new))
                return True
            return self._store_file(fd, where, name, was, new)
        except TooLarge:
            self.large.append((path, name, key, new))
            return True
        except Refused as refused:
            self._skip(where, refused.kind, refused.reason, key, refused.sha256)
        except FileNotFoundError:
            self._skip(where, SkipKind.VANISHED, "removed while the snapshot was being taken", key)
        except OSError as error:
            reason = str(error) if isinstance(error, NotAFile) else error.strerror or str(error)
            self._skip(where, SkipKind.UNREADABLE, f"cannot be read: {reason}", key)
        return False

    def _affordable(self, key: Key) -> None:
        if self.tools.clock() > self.deadline:
            raise Refused(SkipKind.TIME, f"not stored: a snapshot may take {self.policy.max_seconds:g} s")
        if self.files >= self.policy.max_files:
            raise Refused(
                SkipKind.COUNT, f"not stored: a snapshot holds at most {self.policy.max_files} files"
            )
        if self.bytes + key[SIZE] > self.policy.max_bytes and key[SIZE] <= self.policy.huge_file_bytes:
            raise Refused(
                SkipKind.BYTES, f"not stored: a snapshot holds at most {self.policy.max_bytes} bytes"
            )

    def _store_link(self, fd: int, name: str, key: Key, new: Folder) -> bool:
        target = os.fsencode(os.readlink(name, dir_fd=fd))
        self.writer.blob(target)
        self._count(new, name, (blob_id(target),), key)
        return not self._racy(key)

    def _store_file(self, fd: int, where: str, name: str, was: Stored | None, new: Folder) -> bool:
        reading = read_file(fd, name, self.policy.artifact_threshold, self.tools.sleep)
        stored = (blob_id(reading.data),)
        if stored != was:
            self.room.blob(len(reading.data))
            self.writer.blob(reading.data)
        self._count(new, name, stored, reading.key)
        if reading.torn:
            self._skip(
                where, SkipKind.TORN, "stored, but it was being written to while it was read", reading.key
            )
        return not reading.torn and not self._racy(reading.key)

    def _racy(self, key: Key) -> bool:
        whole_seconds = key[CTIME] % 10**9 == 0  # a file system that keeps no finer time
        return key[CTIME] >= self.racy_from - (2 * 10**9 if whole_seconds else 0)

    def _count(self, folder: Folder, name: str, stored: tuple[str, ...], key: Key) -> None:
        folder.entries[name] = key
        folder.stored[name] = stored
        size = key[SIZE] if len(stored) == 1 else int(stored[1])
        folder.files += 1
        folder.bytes += size
        self.files += 1
        self.bytes += size
        if len(stored) == 2:
            folder.artifacts[name] = stored
            self.room.in_use([stored[0]])

    # -- large files --------------------------------------------------------------------------------------

    def _keep_large(self, walked: Walked) -> None:
        """Smallest first, so that a budget costs as few files as possible."""
        for path, name, key, folder in sorted(self.large, key=lambda item: item[2][SIZE]):
            where, sure = child(path, name), False
            try:
                with opened(self.root, path, walked.inodes[path]) as fd:
                    file = open_regular(fd, name)
                try:
                    sure = self._keep(file, where, name, folder)
                finally:
                    os.close(file)
            except Refused as refused:
                self._skip(where, refused.kind, refused.reason, key, refused.sha256)
            except FileNotFoundError:
                self._skip(where, SkipKind.VANISHED, "removed while the snapshot was being taken", key)
            except OSError as error:
                full = error.errno in {errno.ENOSPC, errno.EDQUOT}
                kind, what = (
                    (SkipKind.DISK, "not stored") if full else (SkipKind.UNREADABLE, "cannot be read")
                )
                self._skip(where, kind, f"{what}: {error.strerror or error}", key)
            if not sure:
                folder.unsure |= {name}

    def _keep(self, file: int, where: str, name: str, folder: Folder) -> bool:
        now = os.fstat(file)
        key = key_of(now)
        self._affordable(key)
        if now.st_size > self.policy.huge_file_bytes:
            raise self._too_huge(file, now.st_size)
        self.room.artifact(file, now, self.deadline)
        kept = self.artifacts.keep(file, self.deadline, self.tools.clock)
        self.writer.blob(pointer(kept.sha256, kept.size))
        self._count(folder, name, (kept.sha256, str(kept.size)), kept.key)
        if kept.torn:
            self._skip(
                where,
                SkipKind.TORN,
                "stored, but it was being written to while it was read",
                kept.key,
                kept.sha256,
            )
        return not kept.torn and not self._racy(kept.key)

    def _too_huge(self, file: int, size: int) -> Refused:
        reason = f"not stored: {size} bytes, and a file of more than {self.policy.huge_file_bytes} is not kept by policy"
        sha256 = None
        if self.artifacts.expected_seconds(size) <= self.policy.huge_hash_seconds:
            sha256 = self.artifacts.digest(file, self.deadline, self.tools.clock)
        return Refused(SkipKind.HUGE, reason + ("" if sha256 else "; too large to be hashed in time"), sha256)

    def _skip(self, path: str, kind: SkipKind, reason: str, key: Key, sha256: str | None = None) -> None:
        self.skipped.append(SkippedPath(shown(path), reason, kind, key[SIZE], key[MTIME], sha256))


def _known(old: Folder | None, name: str, key: Key) -> Stored | None:
    """Where the contents of an untouched file are stored."""
    if old is None or name in old.unsure or old.entries.get(name) != key:
        return None
    return old.stored.get(name)


def _special(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
