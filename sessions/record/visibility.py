"""What a participant may see of the log: everything but scores that the session hides."""

from __future__ import annotations

from msgspec.structs import replace

from environments.contract import ScoreStatus
from sessions.record.events import Event, ScoreRecorded, SessionClosed, SessionOpened, StartingScoreRecorded
from sessions.record.state import ScoreRow, SessionState

HIDDEN_MESSAGE = "hidden in this session"
REFUSED_MESSAGE = "not accepted; the reason is hidden in this session, `check` names what it can"
_OURS = (ScoreStatus.INFRASTRUCTURE, ScoreStatus.CANCELLED, ScoreStatus.TIMEOUT)
"""Statuses whose messages come from us and say nothing of the submission's score."""


def participant_event(event: Event, state: SessionState) -> Event:
    """Return the event as the participant may see it."""
    if not state.scores_hidden:
        return event
    body = event.body
    if isinstance(body, ScoreRecorded | StartingScoreRecorded):
        message = shown_message(body.status, body.message)
        return replace(event, body=replace(body, raw=None, message=message, details_sha256=None))
    if isinstance(body, SessionClosed):
        return replace(event, body=replace(body, raw=None, normalised=None, counted_score=None))
    if isinstance(body, SessionOpened):
        return replace(event, body=replace(body, anchors=None))
    return event


def participant_row(row: ScoreRow, state: SessionState) -> ScoreRow:
    """Return a score row as the participant may see it."""
    if not state.scores_hidden or row.status is None:
        return row
    message = shown_message(row.status, row.message)
    return replace(row, raw=None, normalised=None, change=None, message=message, details_sha256=None)


def shown_message(status: ScoreStatus, message: str) -> str:
    """Return what a participant may read of a scoring's message where scores are hidden: messages may hold figures."""
    if status in _OURS:
        return message
    return HIDDEN_MESSAGE if status is ScoreStatus.VALID else REFUSED_MESSAGE
