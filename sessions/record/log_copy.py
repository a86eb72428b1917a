"""A second copy of a log in another place, kept level with it; trouble there never holds the log up."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class LogCopy:
    """Follows the log at `source`; behind after trouble, it catches up with the next line that can be written."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self._descriptor: int | None = None
        self.problem: str | None = None
        """Why the copy is behind now."""

    def append(self, data: bytes) -> None:
        """Write one line, or everything that is missing."""
        try:
            if self._descriptor is None:
                self._descriptor = self._level()
            else:
                self._write(data)
            self.problem = None
        except OSError as error:
            self.problem = (
                f"the second copy of the log at {self._target} is behind: {error.strerror or error}"
            )
            self.close()

    def _write(self, data: bytes) -> None:
        assert self._descriptor is not None
        if os.write(self._descriptor, data) != len(data):
            raise OSError("short write")
        os.fsync(self._descriptor)

    def _level(self) -> int:
        """Make the copy what the log is now; one that says something else is kept aside, never written over."""
        wanted = self._source.read_bytes()
        have = self._target.read_bytes() if self._target.exists() else b""
        common = min(len(wanted), len(have))
        if wanted[:common] != have[:common]:
            self._target.rename(self._aside())
            have, common = b"", 0
        descriptor = os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, common)
            os.write(descriptor, wanted[common:])
            os.fsync(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _aside(self) -> Path:
        names = (self._target.with_name(f"{self._target.name}.differs-{n}") for n in range(1, 10_000))
        return next(path for path in names if not path.exists())

    def close(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
