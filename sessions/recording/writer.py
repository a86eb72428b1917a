"""Appends chunks to a recording's segments: every chunk reaches the kernel at once, the disk within a second."""

from __future__ import annotations

import errno
import os
import queue
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from sessions.record.clock import Clock
from sessions.recording.format import (
    FIRST_PREV,
    Kind,
    SegmentHeader,
    pack_chunk_head,
    pack_header,
    pack_size,
    unpack_size,
)

_LEVEL = 4
"""Half the work of the usual 6, for a few per cent more bytes of terminal output."""
Nanoseconds = Callable[[], int]


class Rotation(msgspec.Struct, frozen=True):
    """When a segment is full."""

    bytes: int = 1 << 19
    seconds: float = 600.0


ROTATION = Rotation()


class Figures(msgspec.Struct, frozen=True):
    """What a finished recording amounts to."""

    output_bytes: int
    sha256: str
    """Of the last segment, whose header names the one before it: it seals them all."""


def segment_name(number: int) -> str:
    return f"{number:06d}.seg"


class SegmentWriter:
    """The one writer of a recording.

    A chunk that cannot be written raises OSError and leaves the segment as it was, so that the caller may
    try again when there is space.
    """

    def __init__(
        self,
        folder: Path,
        *,
        recording: int,
        command: str,
        size: tuple[int, int],
        clock: Clock,
        nanoseconds: Nanoseconds,
        rotation: Rotation = ROTATION,
        sync_every: float = 0.5,
    ) -> None:
        self._folder = folder
        self._recording = recording
        self._command = command
        self._size = size
        self._clock = clock
        self._nanoseconds = nanoseconds
        self._rotation = rotation
        self._number = -1
        self._fd = -1
        self._prev = FIRST_PREV
        self.output_bytes = 0
        self.segments_closed = 0
        self._finisher = _Finisher(folder, sync_every)
        self._open_next()

    def start(self) -> None:
        """Begin to sync and compress; apart from making it, so that a process may fork before it has threads."""
        self._finisher.start()

    @property
    def trouble(self) -> str | None:
        """What went wrong while syncing or compressing, else None."""
        return self._finisher.trouble

    def append(self, kind: Kind, payload: bytes) -> None:
        """Write one chunk.

        Raises:
            OSError: the disk refused; nothing of the chunk is left.
        """
        now = self._nanoseconds()
        if self._length >= self._rotation.bytes or now >= self._rotate_at:
            self._rotate()
        head = pack_chunk_head(kind, payload, max(0, now - self._began))
        self._put(head, payload)
        if kind is Kind.OUTPUT:
            self.output_bytes += len(payload)
        elif kind is Kind.RESIZE:
            self._size = unpack_size(payload)

    def _put(self, head: bytes, payload: bytes) -> None:
        length = len(head) + len(payload)
        try:
            if os.pwritev(self._fd, (head, payload), self._length) != length:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._length)
            raise
        self._length += length
        self._hash.update(head)
        self._hash.update(payload)
        self._finisher.dirty = True

    def _rotate(self) -> None:
        old, digest = self._fd, self._hash.hexdigest()
        previous, self._prev = self._prev, digest
        try:
            self._open_next()
        except OSError:
            self._prev = previous
            raise
        self.segments_closed += 1
        self._finisher.finish(old, self._folder / segment_name(self._number - 1), self._fd)

    def _open_next(self) -> None:
        now = self._clock.now()
        number = self._number + 1
        header = SegmentHeader(
            self._recording, number, self._prev, now.boot_id, now.boottime, now.at,
            self.output_bytes, *self._size, self._command,
        )  # fmt: skip
        first = pack_header(header) + pack_chunk_head(Kind.RESIZE, size := pack_size(*self._size), 0) + size
        path = self._folder / segment_name(number)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if os.pwrite(fd, first, 0) != len(first):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            os.close(fd)
            path.unlink()
            raise
        self._number, self._fd, self._length = number, fd, len(first)
        self._hash = sha256(first)
        self._began = now.boottime
        self._rotate_at = now.boottime + round(self._rotation.seconds * 1e9)
        self._finisher.watch(fd)

    def close(self) -> Figures:
        """Bring everything to disk, compressed; the writer is of no use afterwards."""
        self._finisher.finish(self._fd, self._folder / segment_name(self._number), -1)
        self._finisher.start()
        self._finisher.stop()
        return Figures(self.output_bytes, self._hash.hexdigest())


class _Finisher:
    """A thread that syncs the open segment and compresses closed ones, off the path of the bytes."""

    def __init__(self, folder: Path, every: float) -> None:
        self._folder = folder
        self._every = every
        self._closed: queue.SimpleQueue[tuple[int, Path] | None] = queue.SimpleQueue()
        self._fd = -1
        self._lock = threading.Lock()
        self.dirty = False
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._work, name="segments", daemon=True)

    def start(self) -> None:
        if not self._thread.is_alive():
            self._thread.start()

    def watch(self, fd: int) -> None:
        with self._lock:
            self._fd = fd
        self.dirty = True

    def finish(self, fd: int, path: Path, following: int) -> None:
        """Sync, compress and close a segment nothing more is written to."""
        self.watch(following)
        self._closed.put((fd, path))

    def stop(self) -> None:
        self._closed.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            try:
                item = self._closed.get(timeout=self._every)
            except queue.Empty:
                self._sync()
                continue
            if item is None:
                return
            self._try(lambda fd=item[0], path=item[1]: self._compress(fd, path))  # type: ignore[misc]
            os.close(item[0])
            self._sync()

    def _sync(self) -> None:
        with self._lock:
            fd = self._fd
        # Only this thread closes segments, so the descriptor stays good without the lock.
        if self.dirty and fd >= 0:
            self.dirty = False
            self._try(lambda: os.fdatasync(fd))

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self.trouble = f"{error.strerror or error}"
        else:
            self.trouble = None

    def _compress(self, fd: int, path: Path) -> None:
        """Replace a closed segment by its compressed form; a full disk leaves it as it is."""
        os.fdatasync(fd)
        raw = path.read_bytes()
        packed = path.with_name(path.name + ".z")
        draft = path.with_name(path.name + ".z.part")
        try:
            with draft.open("wb") as out:
                out.write(zlib.compress(raw, _LEVEL))
                out.flush()
                os.fsync(out.fileno())
            draft.rename(packed)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(self._folder)
        path.unlink()


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
