"""The environment's own model behind the gateway: a process of its own, started again when it is found dead."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
from pathlib import Path

import msgspec

from environments.contract import AssetFolders
from sessions.gateway.upstream import Answer, HttpUpstream, UpstreamFailed

START_SECONDS = 60.0
_SETTLE_SECONDS = 1.0
_READY = b"ready"


class OwnModel(msgspec.Struct, frozen=True):
    """Which environment's model, and where its prepared files lie."""

    slug: str
    profile: str
    assets: AssetFolders
    folder: Path | None = None
    """Where the environment lies, when its slug alone would not find it."""


class OwnModelUpstream:
    """Asks an environment's own model, `python -m environments.serve`.

    Args:
        socket: where it is to listen; nobody else may be able to reach it.
    """

    def __init__(
        self,
        model: OwnModel,
        socket: Path,
        command: tuple[str, ...] = (sys.executable, "-m", "environments.serve"),
    ) -> None:
        self._model, self._socket, self._command = model, socket, command
        self._process: asyncio.subprocess.Process | None = None
        self._http: HttpUpstream | None = None
        self._starting = asyncio.Lock()

    async def complete(self, path: str, request: dict[str, object]) -> Answer:
        """Ask the model, once more with a new process if the old one has died.

        Raises:
            UpstreamFailed: it does not start, or died twice.
        """
        for last in (False, True):
            http = await self._living()
            try:
                return await http.complete(path, request)
            except UpstreamFailed:
                if last or not await self._has_died():
                    raise
        raise AssertionError

    async def _living(self) -> HttpUpstream:
        async with self._starting:
            if self._http is None or not self._alive():
                await self.close()
                self._http = await self._started()
            return self._http

    async def _started(self) -> HttpUpstream:
        key = secrets.token_urlsafe(24)
        wanted = {**msgspec.structs.asdict(self._model), "socket": self._socket, "key": key}
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(msgspec.json.encode(wanted, enc_hook=str) + b"\n")
            await self._process.stdin.drain()
        try:
            async with asyncio.timeout(START_SECONDS):
                line = await self._process.stdout.readline()
        except TimeoutError:
            line = b""
        if line.strip() != _READY:
            raise UpstreamFailed(
                f"the environment's own model did not start; is {self._model.slug} prepared here? "
                f"See `rebench-workbench env prepare {self._model.slug} --profile {self._model.profile}`"
            )
        return HttpUpstream("http://model/v1", key, unix_socket=self._socket)

    async def _has_died(self) -> bool:
        """Whether the process is gone; a connection breaks a moment before that is known."""
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _SETTLE_SECONDS)
        return not self._alive()

    def _alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def close(self) -> None:
        """End the model's process."""
        if self._http is not None:
            await self._http.close()
            self._http = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None
