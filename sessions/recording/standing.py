"""How a recorder stands: a small file it writes in place every second, and a lock it holds while it lives.

The file has its blocks before the recording begins, so that a full disk does not keep the recorder from saying
that the disk is full.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sessions.record.events import Light

_SLOT = 4096
LOCK_NAME = "recorder.lock"
STATUS_NAME = "recorder.status"


class Stage(StrEnum):
    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"
    FAILED = "failed"


class RecorderStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a recorder last said of itself."""

    recording: int
    pid: int
    boot_id: str
    heartbeat: int
    """Boot-time nanoseconds of when it was said."""
    socket: str
    command: str
    stage: Stage = Stage.OPENING
    shell_pid: int | None = None
    attached: bool = False
    output_bytes: int = 0
    """Recorded, so far."""
    gaps: int = 0
    """Gaps that have ended."""
    bytes_lost: int = 0
    """In those."""
    last_gap: str = ""
    gap_open: str | None = None
    """Why nothing is being recorded now."""
    light: Light = Light.GREEN
    reason: str = ""
    exit_code: int | None = None
    sha256: str | None = None
    """Of the last segment, once closed."""
    alive: bool = False
    """Whether a process holds the lock; filled in by who reads."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RecorderStatus)


class RecorderBusy(RuntimeError):
    """Another recorder has this recording."""


class Standing:
    """The recorder's side: takes the lock for as long as the process lives, and says how it stands.

    Raises:
        RecorderBusy: another process holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise RecorderBusy(f"a recorder is already at work in {folder}") from None
        self._fd = os.open(folder / STATUS_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._fd, bytes(_SLOT), 0)

    def say(self, status: RecorderStatus) -> None:
        """Write the status; a disk that refuses even this shows as a heartbeat that stops."""
        body = _encoder.encode(status)
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        with suppress(OSError):
            os.pwrite(self._fd, line.ljust(_SLOT, b"\0"), 0)


def read_status(folder: Path) -> RecorderStatus | None:
    """Return how the recorder of `folder` stands, or None where none ever said anything readable."""
    try:
        for _ in range(3):
            # The lock first: what is read after it was let go is the last word.
            alive = _held(folder / LOCK_NAME)
            line = (folder / STATUS_NAME).read_bytes().partition(b"\n")[0]
            checksum, _, body = line.partition(b" ")
            if body and int(checksum, 16) == zlib.crc32(body):
                return replace(_decoder.decode(body), alive=alive)
    except (OSError, ValueError):
        pass
    return None


def _held(lock: Path) -> bool:
    """Whether a process holds the lock, without waiting for it."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)
