"""Large files by SHA-256: cloned where the file system can, else copied and hashed in one pass; never hard-linked."""

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic, perf_counter
from typing import NamedTuple

import msgspec

from sessions.snapshots.folders import Key, key_of
from sessions.snapshots.values import SkipKind

FICLONE = 0x40049409
_CHUNK = 4 << 20
_SENT_AT_ONCE = 64 << 20
_ASSUMED_RATE = 1.0e9  # bytes a second, until this process has hashed something


class Refused(Exception):
    """Not stored, for a reason that belongs in the manifest."""

    def __init__(self, kind: SkipKind, reason: str, sha256: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.sha256 = kind, reason, sha256


class Kept(NamedTuple):
    sha256: str
    size: int
    key: Key
    """Of the file as it was when its bytes were read."""
    torn: bool


class Evicted(msgspec.Struct, frozen=True):
    """A line of the ledger that explains why an artifact is not there."""

    sha256: str
    size: int
    snapshot: int
    """The snapshot that needed the room, or the newest when it was asked for."""


class Artifacts:
    """A folder of large files, each read-only under its own hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._making = folder / "making"
        self._ledger = folder / "evicted.jsonl"
        self._rate = _ASSUMED_RATE

    def create(self) -> None:
        self._making.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        return self.path(sha256).exists()

    def all(self) -> Iterator[tuple[str, int]]:
        """Every artifact and the bytes it takes on the disk."""
        for shard in sorted(self.folder.glob("??")):
            for file in sorted(shard.iterdir()):
                yield file.name, file.stat().st_blocks * 512

    def used(self) -> int:
        return sum(size for _, size in self.all())

    def free(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def expected_seconds(self, size: int) -> float:
        """To hash `size` bytes, at the best rate seen so far."""
        return size / self._rate

    # -- keeping ------------------------------------------------------------------------------------------

    def keep(self, file: int, deadline: float, clock: Callable[[], float] = monotonic) -> Kept:
        """Store the open file; `Refused` when the time is up. A file that keeps changing is stored torn."""
        kept = None
        for _ in range(3):
            before = os.fstat(file)
            kept = self._keep_once(file, before, deadline, clock)
            if not kept.torn:
                return kept
            if clock() + self.expected_seconds(before.st_size) > deadline:
                return kept
        assert kept is not None
        return kept

    def _keep_once(
        self, file: int, before: os.stat_result, deadline: float, clock: Callable[[], float]
    ) -> Kept:
        making = self._making / token_hex(8)
        target = os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # The kernel copies, we hash the copy: what is stored is what was hashed, whatever happens to the file.
            # Hashing and copying in turn, chunk by chunk, was measured at two to three times this.
            cloned = _clone(file, target)
            size = (
                os.fstat(target).st_size
                if cloned
                else self._copy(file, target, before.st_size, deadline, clock)
            )
            with ThreadPoolExecutor(max_workers=1) as beside:
                flushed = beside.submit(os.fsync, target)
                digest = self._hash(file if cloned else target, size, deadline, clock)
                torn = key_of(os.fstat(file)) != key_of(before)
                if cloned and torn:
                    # A clone's own pages are cold, so the file's stood for them; now they do not agree.
                    digest, torn = self._hash(target, size, deadline, clock), False
                flushed.result()
            if not self.has(digest):
                os.fchmod(target, 0o400)
                self._publish(making, digest)
        finally:
            os.close(target)
            with suppress(FileNotFoundError):
                making.unlink()
        return Kept(digest, size, key_of(before), torn)

    def _copy(self, file: int, target: int, size: int, deadline: float, clock: Callable[[], float]) -> int:
        for at in copy_sparse(file, target, size):
            if clock() > deadline:
                raise Refused(
                    SkipKind.TIME, f"not stored: the snapshot's time was up after {at} of {size} bytes"
                )
        return os.fstat(target).st_size

    def _hash(self, file: int, size: int, deadline: float, clock: Callable[[], float]) -> str:
        """SHA-256 of the first `size` bytes; the rate of it is remembered."""
        hasher = hashlib.sha256()
        began, at = perf_counter(), 0
        buffer = memoryview(bytearray(min(_CHUNK, size + 1)))
        while at < size and (got := os.preadv(file, [buffer[: size - at]], at)):
            hasher.update(buffer[:got])
            at += got
            if clock() > deadline:
                raise Refused(
                    SkipKind.TIME, f"not stored: the snapshot's time was up after {at} of {size} bytes"
                )
        if at > _CHUNK:
            self._rate = at / max(perf_counter() - began, 1e-6)
        return hasher.hexdigest()

    def digest(self, file: int, deadline: float, clock: Callable[[], float] = monotonic) -> str:
        return self._hash(file, os.fstat(file).st_size, deadline, clock)

    def _publish(self, making: Path, digest: str) -> None:
        final = self.path(digest)
        if not final.parent.exists():
            final.parent.mkdir(mode=0o700)
            _sync_folder(self.folder)
        making.rename(final)
        _sync_folder(final.parent)

    # -- giving back and taking away ----------------------------------------------------------------------

    def give(self, sha256: str, target: int) -> bool:
        """Fill the open, empty file `target`; true where its blocks are shared with ours until either is written."""
        source = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _clone(source, target):
                return True
            for _ in copy_sparse(source, target, os.fstat(source).st_size):
                pass
            return False
        finally:
            os.close(source)

    def evict(self, digests: list[str], snapshot: int) -> int:
        """Remove artifacts, after writing down that they were; the bytes given back."""
        found = [(d, self.path(d).stat()) for d in digests if self.has(d)]
        if not found:
            return 0
        with self._ledger.open("ab") as ledger:
            for digest, status in found:
                ledger.write(msgspec.json.encode(Evicted(digest, status.st_size, snapshot)) + b"\n")
            ledger.flush()
            os.fsync(ledger.fileno())
        for digest, _ in found:
            self.path(digest).unlink()
        return sum(status.st_blocks * 512 for _, status in found)

    def evicted(self) -> dict[str, Evicted]:
        """All that was ever evicted; what was stored again since is also `has`."""
        try:
            lines = self._ledger.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        found = {}
        for line in lines:
            with suppress(
                msgspec.DecodeError
            ):  # a last line torn by a crash explains nothing, and hides nothing
                entry = msgspec.json.decode(line, type=Evicted)
                found[entry.sha256] = entry
        return found

    def problem(self, sha256: str, size: int) -> str | None:
        """What is wrong with a stored artifact, hashed in full; None when it is as it should be."""
        try:
            fd = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None if sha256 in self.evicted() else f"artifact {sha256} ({size} bytes) is missing"
        except OSError as error:
            return f"artifact {sha256} cannot be opened: {error.strerror}"
        try:
            found = os.fstat(fd).st_size
            if found != size:
                return f"artifact {sha256} has {found} bytes where {size} were stored"
            if self.digest(fd, float("inf")) != sha256:
                return f"artifact {sha256} ({size} bytes) does not hash to its own name"
        except OSError as error:
            return f"artifact {sha256} cannot be read: {error.strerror}"
        finally:
            os.close(fd)
        return None

    def sweep(self) -> None:
        """Remove what a killed process was still making."""
        for leftover in self._making.glob("*"):
            leftover.unlink()


def _clone(source: int, target: int) -> bool:
    """Share all blocks of `source` with `target`, as XFS, Btrfs and Bcachefs can; the clone cannot be torn."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError as error:
        if error.errno in {
            errno.EOPNOTSUPP,
            errno.EXDEV,
            errno.EINVAL,
            errno.ENOTTY,
            errno.ENOSYS,
            errno.EPERM,
        }:
            return False
        raise
    return True


def copy_sparse(source: int, target: int, size: int) -> Iterator[int]:
    """The first `size` bytes of `source`, its holes left as holes; yields how far it has come, now and then."""
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but hole from here on, or cut short meanwhile
                break
            raise
        os.lseek(source, at, os.SEEK_SET)
        os.lseek(target, at, os.SEEK_SET)
        while at < end and (sent := _send(source, target, min(end - at, _SENT_AT_ONCE))):
            at += sent
            yield at
        if at < end:
            break
    os.ftruncate(target, min(size, os.fstat(source).st_size))


def _send(source: int, target: int, count: int) -> int:
    """From one file's position to the other's, inside the kernel where it does that for files."""
    try:
        return os.sendfile(target, source, None, count)
    except OSError as error:
        if error.errno not in {errno.ENOTSOCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}:
            raise
    data = memoryview(os.read(source, min(count, _CHUNK)))
    left = data
    while left:
        left = left[os.write(target, left) :]
    return len(data)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def pointer(sha256: str, size: int) -> bytes:
    """What stands in the tree for an artifact, in the format of Git LFS."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
