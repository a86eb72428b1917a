"""What clients and a host say to each other: JSON-RPC 2.0, one message a line, on a Unix socket.

Every method takes named parameters and answers with an object. Authority is the socket: `participant.sock`
offers the participant's methods, `proctor.sock` those and the proctor's. The full table is in docs/protocol.md.
"""

from __future__ import annotations

from enum import IntEnum

PROTOCOL = 1
LINE_LIMIT = 64 * 1024 * 1024
"""Longest message in bytes."""

PARTICIPANT_METHODS = (
    "hello",
    "status",
    "brief",
    "consent",
    "start_clock",
    "check",
    "score",
    "cancel_score",
    "history",
    "note",
    "pause",
    "resume",
    "submit",
    "survey",
    "acknowledge",
    "diff",
    "changed",
    "exec",
    "usage",
    "events",
    "open_shell",
)
PROCTOR_METHODS = ("credit", "correct", "message", "end", "force_pause", "force_resume", "details")


class Fault(IntEnum):
    """Error codes of answers; the first four are JSON-RPC's own."""

    NOT_JSON = -32700
    NOT_A_REQUEST = -32600
    UNKNOWN_METHOD = -32601
    BAD_PARAMETERS = -32602
    INTERNAL = -32603
    REFUSED = -32000
    """The session does not allow it now: clock, phase, policy or authority."""
    INFRASTRUCTURE = -32001
    """Ours broke: scorer, disk, snapshot."""


class Refusal(Exception):
    """An answer that is an error, on its way to the client."""

    def __init__(self, message: str, fault: Fault = Fault.REFUSED) -> None:
        super().__init__(message)
        self.fault = fault
