"""Every model call on record: a line when it begins, a line when it ends, so that a crash hides none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from sessions.gateway.meter import Reservation, Spent
from sessions.record.clock import Clock
from sessions.record.events import SESSION_ACCOUNT


class CallBegan(msgspec.Struct, frozen=True, tag="began"):
    number: int
    at: str
    caller: str
    path: str
    request: dict[str, Any]
    worst: Spent
    account: str = SESSION_ACCOUNT
    """Whose budget pays: the session's, or one scoring's own."""


class CallEnded(msgspec.Struct, frozen=True, tag="ended"):
    number: int
    at: str
    status: int
    response: dict[str, Any]
    cost: Spent


Line = CallBegan | CallEnded
_decoder = msgspec.json.Decoder(Line)


class CallLog:
    """`gateway/calls.jsonl` of a record."""

    def __init__(self, path: Path, clock: Clock) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.write(self._descriptor, b"\n")

    def began(
        self,
        reservation: Reservation,
        caller: str,
        path: str,
        request: dict[str, Any],
        account: str = SESSION_ACCOUNT,
    ) -> None:
        at = self._clock.now().at
        self._write(CallBegan(reservation.number, at, caller, path, request, reservation.worst, account))

    def ended(self, number: int, status: int, response: dict[str, Any], cost: Spent) -> None:
        self._write(CallEnded(number, self._clock.now().at, status, response, cost))

    def _write(self, line: Line) -> None:
        os.write(self._descriptor, msgspec.json.encode(line) + b"\n")
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def read_calls(path: Path) -> list[Line]:
    """Return every whole line; torn ones are left out."""
    lines: list[Line] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            lines.append(_decoder.decode(line))
        except msgspec.DecodeError:
            continue
    return lines


def spent_so_far(lines: list[Line]) -> tuple[Spent, int]:
    """Return what the shared account's calls cost and the next number; a call without an end costs its worst."""
    following = max((line.number for line in lines), default=-1) + 1
    costs: dict[int, Spent] = {}
    for line in lines:
        if isinstance(line, CallEnded):
            if line.number in costs:
                costs[line.number] = line.cost
        elif line.account == SESSION_ACCOUNT:
            costs[line.number] = line.worst
    total = Spent()
    for cost in costs.values():
        total = total.plus(cost)
    return total, following
