"""One snapshot in the making: look, read what changed, write one pack, publish one commit."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, sleep, time_ns

import msgspec

from sessions.snapshots.artifacts import Artifacts, Refused, pointer
from sessions.snapshots.contents import NotAFile, TooLarge, open_regular, read_file
from sessions.snapshots.folders import CTIME, MODE, MTIME, SIZE, Key, is_folder, key_of, opened
from sessions.snapshots.memory import Memory
from sessions.snapshots.names import ENTRIES, child, shown, to_tree, tree_path
from sessions.snapshots.nested import describe
from sessions.snapshots.objects import blob_id
from sessions.snapshots.room import Room
from sessions.snapshots.rules import Rules
from sessions.snapshots.tally import condensed, totals
from sessions.snapshots.values import (
    Manifest,
    SkipKind,
    SkippedPath,
    SnapshotPolicy,
    SnapshotStatus,
    StoredArtifact,
)
from sessions.snapshots.walk import Folder, Limits, Stored, Walked, count_excluded, walk
from sessions.snapshots.writing import Import

MANIFEST_VERSION = 1
_RACY_NS = 100_000_000
"""A file changed this shortly before we looked may change again without its times showing it."""
_SECOND_LOOKS = 2
_COUNTING_SECONDS = 0.15
_LISTED_IN_MANIFEST = 10_000
_NO_KEY: Key = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tools:
    """Everything from outside that a snapshot needs, so that tests can bring their own."""

    clock: Callable[[], float] = monotonic
    wall_ns: Callable[[], int] = time_ns
    sleep: Callable[[float], None] = sleep


@dataclass(slots=True)
class Taken:
    """What `Taking` hands back before anything is published."""

    manifest: Manifest
    folders: dict[str, Folder]


@dataclass(slots=True)
class Changes:
    """What the commit has to say about the tree, gathered while blobs are being written."""

    deleted: list[bytes] = field(default_factory=list)
    placed: list[tuple[bytes, str, bytes]] = field(default_factory=list)
    facts: list[tuple[bytes, bytes]] = field(default_factory=list)


class Taking:
    """Everything that happens between opening the working tree and the commit."""

    def __init__(
        self,
        root: int,
        number: int,
        policy: SnapshotPolicy,
        writer: Import,
        artifacts: Artifacts,
        room: Room,
        memory: Memory | None,
        parent: str | None,
        tools: Tools,
    ) -> None:
        self.root, self.number, self.policy = root, number, policy
        self.writer, self.artifacts, self.room, self.tools = writer, artifacts, room, tools
        self.began = tools.clock()
        self.deadline = self.began + policy.max_seconds
        self.racy_from = tools.wall_ns() - _RACY_NS
        top = os.fstat(root)
        same_root = memory is not None and memory.root == (top.st_dev, top.st_ino)
        self.known: Mapping[str, Folder] = memory.folders if memory and same_root else {}
        """Whose contents are in the store already."""
        self.parent, self.anew = parent, not (self.known and memory and memory.commit == parent)
        self.before = {} if self.anew else self.known
        """What the parent commit says; nothing where that is not known for certain."""
        self.changes = Changes()
        self._start_over()

    def _start_over(self) -> None:
        self.skipped: list[SkippedPath] = []
        self.files = self.bytes = 0
        self.large: list[tuple[str, str, Key, Folder]] = []

    # -- the whole ----------------------------------------------------------------------------------------

    def run(self) -> Taken:
        walked, folders = self._look_and_read()
        for _ in range(_SECOND_LOOKS):
            if not walked.gone and not any(s.kind is SkipKind.VANISHED for s in self.skipped):
                break
            # What vanished may only have been renamed, to a name we had already passed.
            self.known = folders
            self._start_over()
            walked, folders = self._look_and_read()
        left = self.before.keys() - walked.folders.keys()
        parents = {path.rpartition("/")[0] for path in left if path}
        for path, folder in folders.items():
            if folder is not self.before.get(path) or path in parents:
                self._describe_folder(path, folder, walked)
        for path in left:
            self.changes.deleted += [b"work/" + tree_path(path), b"facts/" + tree_path(path)]
        return Taken(self._manifest(walked, folders), folders)

    def _look_and_read(self) -> tuple[Walked, dict[str, Folder]]:
        limits = Limits(self.deadline, self.policy.max_files, self.tools.clock)
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

    # -- reading ------------------------------------------------------------------------------------------

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
                if not self._read(fd, path, name, key, new):
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

    def _read(self, fd: int, path: str, name: str, key: Key, new: Folder) -> bool:
        """Store one file or link; false where the next snapshot has to look at it again."""
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
            return self._store_file(fd, where, name, key, new)
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

    def _store_file(self, fd: int, where: str, name: str, key: Key, new: Folder) -> bool:
        reading = read_file(fd, name, self.policy.artifact_threshold, self.tools.sleep)
        self.room.blob(len(reading.data))
        self.writer.blob(reading.data)
        self._count(new, name, (blob_id(reading.data),), reading.key)
        if reading.torn:
            self._skip(
                where, SkipKind.TORN, "stored, but it was being written to while it was read", reading.key
            )
        return not reading.torn and not self._racy(reading.key)

    def _racy(self, key: Key) -> bool:
        return key[CTIME] >= self.racy_from or key[MTIME] >= self.racy_from

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
            where = child(path, name)
            try:
                with opened(self.root, path, walked.inodes[path]) as fd:
                    file = open_regular(fd, name)
                try:
                    unsure = not self._keep(file, where, name, folder)
                finally:
                    os.close(file)
            except Refused as refused:
                self._skip(where, refused.kind, refused.reason, key, refused.sha256)
                unsure = True
            except FileNotFoundError:
                self._skip(where, SkipKind.VANISHED, "removed while the snapshot was being taken", key)
                unsure = True
            except OSError as error:
                self._skip(where, SkipKind.UNREADABLE, f"cannot be read: {error.strerror or error}", key)
                unsure = True
            if unsure:
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

    # -- saying what the tree is now ----------------------------------------------------------------------

    def _describe_folder(self, path: str, folder: Folder, walked: Walked) -> None:
        """Everything in which the folder differs from what the parent commit says, and its facts."""
        old = self.before.get(path)
        was = old.stored if old else {}
        base = tree_path(path) + b"/" if path else b""
        rows: list[tuple[object, ...]] = []
        for name in sorted(folder.entries):
            key = folder.entries[name]
            below = child(path, name)
            if is_folder(key):
                if below in walked.folders or below in walked.hollow:
                    rows.append((shown(name), key[MODE], key[MTIME]))
                continue
            stored = folder.stored.get(name)
            if stored is None:
                continue
            rows.append(
                (
                    shown(name),
                    key[MODE],
                    key[MTIME],
                    *((stored[0], int(stored[1])) if len(stored) == 2 else ()),
                )
            )
            mode = _git_mode(key[MODE])
            if was.get(name) != stored or old is None or _git_mode(old.entries[name][MODE]) != mode:
                oid = stored[0] if len(stored) == 1 else blob_id(pointer(stored[0], int(stored[1])))
                self.changes.placed.append((mode, oid, b"work/" + base + to_tree(os.fsencode(name))))
        for name in was.keys() - folder.stored.keys():
            self.changes.deleted.append(b"work/" + base + to_tree(os.fsencode(name)))
        self.changes.facts.append((msgspec.json.encode(rows), b"facts/" + base + ENTRIES.encode()))

    # -- the manifest -------------------------------------------------------------------------------------

    def _skip(self, path: str, kind: SkipKind, reason: str, key: Key, sha256: str | None = None) -> None:
        self.skipped.append(SkippedPath(shown(path), reason, kind, key[SIZE], key[MTIME], sha256))

    def _manifest(self, walked: Walked, folders: dict[str, Folder]) -> Manifest:
        excluded = count_excluded(self.root, walked.excluded, _COUNTING_SECONDS, self.tools.clock)
        lossy = any(s.kind.loses_content for s in self.skipped)
        return Manifest(
            version=MANIFEST_VERSION,
            number=self.number,
            status=SnapshotStatus.PARTIAL if lossy else SnapshotStatus.COMPLETE,
            files=self.files,
            bytes=self.bytes,
            folders=len(folders),
            seconds=round(self.tools.clock() - self.began, 6),
            policy=self.policy,
            skipped=condensed(self.skipped, _LISTED_IN_MANIFEST),
            skipped_count=len(self.skipped),
            excluded=tuple(excluded[:_LISTED_IN_MANIFEST]),
            excluded_total=totals(excluded),
            nested=tuple(describe(self.root, path, folders, walked) for path in walked.nested),
            artifacts=tuple(
                StoredArtifact(shown(child(path, name)), sha256, int(size))
                for path, folder in folders.items()
                for name, (sha256, size) in folder.artifacts.items()
            ),
            evicted=tuple(self.room.evicted),
        )

    def write(self, ref: str, message: str, at: int, manifest: Manifest) -> None:
        """The commit, from the parent's tree and the changes; deletions first, so that a file may become a folder."""
        writer = self.writer
        writer.commit(ref, message, at, self.parent, anew=self.anew)
        for path in sorted(self.changes.deleted):
            writer.delete(path)
        for mode, oid, path in self.changes.placed:
            writer.place(mode, oid, path)
        for data, path in self.changes.facts:
            writer.place_text(data, path)
        writer.place_text(msgspec.json.format(msgspec.json.encode(manifest), indent=1), b"manifest.json")
        writer.ask_for_tree(b"work")
        writer.end()


def _known(old: Folder | None, name: str, key: Key) -> Stored | None:
    """Where the contents of an untouched file are stored."""
    if old is None or name in old.unsure or old.entries.get(name) != key:
        return None
    return old.stored.get(name)


def _git_mode(mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return b"120000"
    return b"100755" if mode & 0o100 else b"100644"


def _special(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
