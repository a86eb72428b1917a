"""What a host would answer about a session, read from its log instead: the same fold, the same words."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from sessions.clients.protocol import Refusal
from sessions.record.fold import fold
from sessions.record.log import read_log
from sessions.record.state import SessionState
from sessions.record.store import Record
from sessions.record.summary import history, summarise


def folded(record: Record) -> SessionState:
    """Return the state at the end of the record's log.

    Raises:
        LogDamaged: the chain does not hold.
    """
    return fold(read_log(record.log).events)


def answer(record: Record, method: str, *, proctor: bool = False, **_parameters: Any) -> dict[str, Any]:
    """Answer `status`, `history` or `brief` from the log."""
    state = folded(record)
    match method:
        case "status":
            return summarise(state, state.last, proctor=proctor)
        case "history":
            return {"rows": history(state, proctor=proctor)}
        case "brief" if state.started_at is None:
            raise Refusal("the brief is shown once the clock runs, and this session never began")
        case "brief":
            text = record.brief.read_text(encoding="utf-8")
            return {"text": text, "sha256": sha256(text.encode()).hexdigest()}
    raise Refusal(f"session {record.session} is closed; {method} needs a live one")
