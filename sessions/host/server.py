"""A host's sockets: one connection is one client; requests run side by side, events flow in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from sessions.clients.protocol import LINE_LIMIT, Fault, Refusal
from sessions.host.dispatch import Dispatcher
from sessions.record.events import Event, decode, encode
from sessions.record.fold import EventImpossible
from sessions.record.log import Journal
from sessions.record.visibility import participant_event
from sessions.telemetry import Sample

BACKLOG_BYTES = 256 * 1024 * 1024
"""A client that reads nothing while this much waits for it is dropped; it may connect again."""

_encoder = msgspec.json.Encoder()


class Server:
    """Listens on one socket and serves one authority."""

    def __init__(self, dispatcher: Dispatcher, journal: Journal) -> None:
        self._dispatcher = dispatcher
        self._journal = journal
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, path: Path, *, owner: int | None = None) -> None:
        """Listen at `path`, taking the place of a dead host's socket; `owner` may open it, and we."""
        listening = _socket_at(path, owner)
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=LINE_LIMIT)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._dispatcher, self._journal)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def telemetry(self, sample: Sample) -> None:
        """Send a sample to everyone who follows."""
        message = notification("telemetry", sample)
        for connection in tuple(self._connections):
            if connection.follows:
                connection.send(message)

    def alarm(self, text: str) -> None:
        """Say what cannot be written to the log, such as that the log cannot be written."""
        for connection in tuple(self._connections):
            if connection.follows:
                connection.send(notification("alarm", {"text": text}))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.close()


class Connection:
    """One client."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        dispatcher: Dispatcher,
        journal: Journal,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._dispatcher = dispatcher
        self._journal = journal
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def follows(self) -> bool:
        return self._unsubscribe is not None

    async def serve(self) -> None:
        """Answer until the client leaves; what it asked for goes on without it."""
        try:
            while (line := await self._reader.readline()).endswith(b"\n"):
                task = asyncio.create_task(self._answer(line))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (OSError, ValueError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._writer.close()

    def send(self, message: bytes) -> None:
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > BACKLOG_BYTES:
            self.close()
            return
        self._writer.write(message)

    async def _answer(self, line: bytes) -> None:
        number: Any = None
        try:
            request = msgspec.json.decode(line)
            number, method = request.get("id"), request["method"]
            if method == "events":
                self._follow(number, request.get("params", {}))
                return
            result = await self._dispatcher.answer(method, request.get("params", {}))
            self.send(_encoder.encode({"jsonrpc": "2.0", "id": number, "result": result}) + b"\n")
        except Refusal as refusal:
            self._fail(number, refusal.fault, str(refusal))
        except EventImpossible as error:
            self._fail(number, Fault.REFUSED, str(error))
        except OSError as error:
            self._fail(number, Fault.INFRASTRUCTURE, f"nothing was recorded: {error}")
        except msgspec.DecodeError as error:
            self._fail(number, Fault.NOT_JSON, f"not JSON: {error}")
        except (KeyError, AttributeError) as error:
            self._fail(number, Fault.NOT_A_REQUEST, f"not a request: {error}")
        except Exception as error:  # noqa: BLE001  (one request's bug must not end the others)
            self._fail(number, Fault.INTERNAL, f"{type(error).__name__}: {error}")

    def _fail(self, number: Any, fault: Fault, message: str) -> None:
        error = {"code": int(fault), "message": message}
        self.send(_encoder.encode({"jsonrpc": "2.0", "id": number, "error": error}) + b"\n")

    def _follow(self, number: Any, parameters: dict[str, Any]) -> None:
        """Send every event from `from_seq` on, past ones first, without a gap between them and the new."""
        first = int(parameters.get("from_seq", 0))
        self.send(_encoder.encode({"jsonrpc": "2.0", "id": number, "result": {}}) + b"\n")
        for line in self._journal.lines[first:]:
            self._send_event(decode(line) if self._filtered else None, line)
        if self._unsubscribe is None:
            self._unsubscribe = self._journal.subscribe(self._send_event)

    @property
    def _filtered(self) -> bool:
        return self._journal.state.scores_hidden and not self._dispatcher.proctor

    def _send_event(self, event: Event | None, line: bytes) -> None:
        if self._filtered and event is not None:
            line = encode(participant_event(event, self._journal.state))
        self.send(b'{"jsonrpc":"2.0","method":"event","params":' + line + b"}\n")


def _socket_at(path: Path, owner: int | None) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o600)
    if owner is not None:
        os.chown(path, owner, -1)
    return listening


def notification(method: str, parameters: Any) -> bytes:
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": parameters}) + b"\n"
