"""What commands use to talk to a session's host: a plain socket, one request at a time, quick to import."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sessions.clients.protocol import LINE_LIMIT, Fault, Refusal


class HostGone(ConnectionError):
    """No host answers on the socket, or it went away before it answered."""


class Client:
    """A connection to one host.

    Raises:
        HostGone: nobody listens at `path`.
    """

    def __init__(self, path: Path, *, timeout: float | None = None) -> None:
        self.path = path
        self._ids = count(1)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise HostGone(f"no host answers at {path}: {error.strerror or error}") from error
        self._stream = self._socket.makefile("rb")

    def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the host and wait for its answer.

        Raises:
            Refusal: the host answered with an error.
            HostGone: the host went away.
        """
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise HostGone(f"the host went away while {method} was sent: {error}") from error
        for answer in self._messages():
            if answer.get("id") == number:
                return result_of(answer)
        raise HostGone(f"the host went away before it answered {method}")

    def notifications(self, method: str = "events", **parameters: Any) -> Iterator[dict[str, Any]]:
        """Subscribe, then yield each notification until the host goes away."""
        self.request(method, **parameters)
        yield from self.heard()

    def heard(self) -> Iterator[dict[str, Any]]:
        """Yield each notification of a subscription made by `request` until the host goes away."""
        yield from (message for message in self._messages() if "id" not in message)

    def _messages(self) -> Iterator[dict[str, Any]]:
        try:
            while line := self._stream.readline(LINE_LIMIT):
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line)
        except OSError as error:
            raise HostGone(f"the host went away: {error}") from error

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def greeted(path: Path, timeout: float | None = None) -> Client:
    """Connect and wait for an answer: a host that is being killed still takes connections.

    Raises:
        HostGone: nobody answers.
    """
    client = Client(path, timeout=timeout)
    try:
        client.request("hello")
    except HostGone:
        client.close()
        raise
    return client


def result_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer's result.

    Raises:
        Refusal: the answer is an error.
    """
    if "error" in answer:
        error = answer["error"]
        try:
            fault = Fault(error["code"])
        except ValueError:
            fault = Fault.INTERNAL
        raise Refusal(error["message"], fault)
    result: dict[str, Any] = answer["result"]
    return result
