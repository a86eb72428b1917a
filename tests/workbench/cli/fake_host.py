"""A host that answers from a script: JSON lines on the two sockets of a record."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sessions.clients.protocol import Refusal
from sessions.record.fold import fold
from sessions.record.log import read_log
from sessions.record.store import Record
from sessions.record.summary import history, summarise

Answer = dict[str, Any] | Refusal | Callable[..., dict[str, Any]]


class FakeHost:
    """Answers `status` and `history` from the record's log, the rest from `answers`; remembers what was asked."""

    def __init__(self, record: Record, **answers: Answer) -> None:
        self.record = record
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.notifications: list[dict[str, Any]] = []
        """Sent to whoever follows, as soon as a score is asked for."""
        self._followers: list[socket.socket] = []
        self._listeners = [self._listen(path) for path in (record.participant_socket, record.proctor_socket)]

    def _listen(self, path: Path) -> socket.socket:
        path.parent.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=self._accept, args=(listener, path.stem), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket, authority: str) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, authority), daemon=True).start()

    def _serve(self, connection: socket.socket, authority: str) -> None:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                method, parameters = request["method"], request["params"]
                if method != "hello":
                    self.asked.append((f"{authority}:{method}", parameters))
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
                try:
                    answer["result"] = self._answer(method, parameters)
                except Refusal as refusal:
                    answer["error"] = {"code": int(refusal.fault), "message": str(refusal)}
                if method == "events":
                    self._followers.append(connection)
                connection.sendall(json.dumps(answer).encode() + b"\n")
                if method == "score":
                    self._tell()

    def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        answer = self.answers.get(method)
        if isinstance(answer, Refusal):
            raise answer
        if callable(answer):
            return answer(**parameters)
        if answer is not None:
            return answer
        state = fold(read_log(self.record.log).events)
        if method == "status":
            return summarise(state, state.last)
        if method == "history":
            return {"rows": history(state)}
        return {}

    def _tell(self) -> None:
        for message in self.notifications:
            for follower in self._followers:
                follower.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def parameters_of(self, method: str) -> dict[str, Any]:
        """Return the parameters of the last request of that name, `participant:score`."""
        return next(parameters for name, parameters in reversed(self.asked) if name == method)

    def close(self) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
