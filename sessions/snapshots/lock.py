"""One writer at a time in a store, among threads and processes; the kernel forgets a lock whose owner died."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from sessions.snapshots.values import SnapshotBusy

_POLL_SECONDS = 0.02


class Held(NamedTuple):
    fd: int
    waited: float
    """Seconds until it was ours."""


class StoreLock:
    """The lock of one store, in a file beside it that also says who has it."""

    def __init__(
        self, file: Path, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._file, self._seconds, self._clock, self._sleep = file, seconds, clock, sleep
        self._threads = Lock()

    @contextmanager
    def held(self, purpose: str) -> Iterator[Held]:
        began = self._clock()
        if not self._threads.acquire(timeout=self._seconds):
            raise SnapshotBusy(
                f"cannot {purpose}: another thread of this process has held the store for too long"
            )
        try:
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                self._wait(fd, purpose, began + self._seconds)
                os.pwrite(fd, f"{os.getpid()} to {purpose}\n".encode().ljust(80), 0)
                yield Held(fd, self._clock() - began)
            finally:
                os.close(fd)
        finally:
            self._threads.release()

    def _wait(self, fd: int, purpose: str, until: float) -> None:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if self._clock() > until:
                owner = os.pread(fd, 80, 0).decode("utf-8", "replace").strip()
                raise SnapshotBusy(
                    f"cannot {purpose}: waited {self._seconds:g} s for {self._file}, held by process {owner}; "
                    "wait for it, or end it"
                )
            self._sleep(_POLL_SECONDS)
