"""The host's side of telemetry: starts the poller, keeps samples, knows when they are stale."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from sessions.telemetry.samples import Sample

STALE_SECONDS = 5.0
RESTART_SECONDS = 30.0
"""A poller silent for this long is replaced."""


class TelemetryWatch:
    """Runs the poller beside a session; a poller that hangs, dies or raves changes nothing but its panel."""

    def __init__(
        self,
        folder: Path,
        place: Path,
        on_sample: Callable[[Sample], None],
        *,
        command: tuple[str, ...] = (sys.executable, "-m", "sessions.telemetry.poller"),
    ) -> None:
        self._folder = folder
        self._place = place
        self._on_sample = on_sample
        self._command = command
        self._last = time.monotonic()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.latest: Sample | None = None

    @property
    def stale_seconds(self) -> float:
        """Seconds since the last sample."""
        return time.monotonic() - self._last

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _run(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            with contextlib.suppress(OSError):
                await self._follow_one_poller()
            await asyncio.sleep(1)

    async def _follow_one_poller(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            str(self._place),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        try:
            with (self._folder / "samples.jsonl").open("ab") as file:
                file.write(b"\n" if file.tell() else b"")  # ends a line torn by a crash
                while line := await asyncio.wait_for(self._process.stdout.readline(), RESTART_SECONDS):
                    self._keep(line, file.write)
                    with contextlib.suppress(OSError):
                        file.flush()
        except TimeoutError:
            pass
        finally:
            self._kill()
            await self._process.wait()

    def _keep(self, line: bytes, write: Callable[[bytes], object]) -> None:
        try:
            sample = msgspec.json.decode(line, type=Sample)
        except msgspec.DecodeError:
            return
        self._last = time.monotonic()
        self.latest = sample
        with contextlib.suppress(OSError):
            write(line)
        self._on_sample(sample)
