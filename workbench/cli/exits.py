"""What a command's exit code means, and which exception becomes which code."""

from __future__ import annotations

import sys
from enum import IntEnum


class Exit(IntEnum):
    """Every exit code there is; docs/commands.md lists them."""

    OK = 0
    NOT_ACCEPTED = 1
    USAGE = 2
    REFUSED = 3
    ENVIRONMENT = 4
    INFRASTRUCTURE = 5
    DAMAGED = 6
    BUG = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Exit.OK: "done",
    Exit.NOT_ACCEPTED: "`check` found problems: the work would not be accepted as it stands",
    Exit.USAGE: "the command line makes no sense, or names nothing that exists",
    Exit.REFUSED: "the session does not allow it now (clock, phase, policy, authority); nothing has changed",
    Exit.ENVIRONMENT: "an environment is unknown, broken, not prepared, or this machine cannot run it",
    Exit.INFRASTRUCTURE: "ours broke: host, scorer, disk; never held against the participant",
    Exit.DAMAGED: "a record is damaged",
    Exit.BUG: "an error in rebench-workbench itself; the trace is on standard error",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
}

# (module, exception, code): looked up in what is loaded, since an exception exists only where its module does,
# and importing all of them would cost every command tens of milliseconds.
_KNOWN = (
    ("sessions.record.store", "SessionNotFound", Exit.USAGE),
    ("sessions.clients.client", "HostGone", Exit.INFRASTRUCTURE),
    ("sessions.clients.hosting", "SessionOver", Exit.REFUSED),
    ("sessions.host.opening", "WorkTreeUnusable", Exit.USAGE),
    ("sessions.host.opening", "IsolationUnavailable", Exit.ENVIRONMENT),
    ("sessions.snapshots.values", "SnapshotError", Exit.USAGE),
    ("sessions.audit.bundles", "BundleRefused", Exit.REFUSED),
    ("sessions.record.log", "LogDamaged", Exit.DAMAGED),
    ("sessions.record.fold", "EventImpossible", Exit.DAMAGED),
    ("sessions.record.events", "EventUnreadable", Exit.DAMAGED),
    ("environments.contract", "EnvironmentFault", Exit.ENVIRONMENT),
)


class Stop(Exception):
    """A command ends here with a sentence for the user and a code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


def exit_for(error: Exception) -> Exit:
    """Return the code an exception ends the program with; `Exit.BUG` for one nobody expected."""
    if isinstance(error, Stop):
        return error.code
    protocol = sys.modules.get("sessions.clients.protocol")
    if protocol is not None and isinstance(error, protocol.Refusal):
        return _refused(error.fault, protocol.Fault)
    for module, name, code in _KNOWN:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return code
    return Exit.BUG


def _refused(fault: object, faults: type[IntEnum]) -> Exit:
    codes = {
        faults["REFUSED"]: Exit.REFUSED,
        faults["BAD_PARAMETERS"]: Exit.USAGE,
        faults["UNKNOWN_METHOD"]: Exit.REFUSED,
        faults["INFRASTRUCTURE"]: Exit.INFRASTRUCTURE,
    }
    return codes.get(fault, Exit.INFRASTRUCTURE)  # type: ignore[call-overload,no-any-return]
