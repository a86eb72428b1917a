"""What a participant may see of the log: everything but scores that the session hides."""

from __future__ import annotations

from msgspec.structs import replace

from sessions.events import Event, ScoreRecorded, SessionClosed, SessionOpened, StartingScoreRecorded
from sessions.state import ScoreRow, SessionState

HIDDEN_MESSAGE = "hidden in this session"


def participant_event(event: Event, state: SessionState) -> Event:
    """Return the event as the participant may see it."""
    if not state.scores_hidden:
        return event
    body = event.body
    if isinstance(body, ScoreRecorded | StartingScoreRecorded) and body.raw is not None:
        return replace(event, body=replace(body, raw=None, message=HIDDEN_MESSAGE, details_sha256=None))
    if isinstance(body, SessionClosed):
        return replace(event, body=replace(body, raw=None, normalised=None, counted_score=None))
    if isinstance(body, SessionOpened):
        return replace(event, body=replace(body, anchors=None))
    return event


def participant_row(row: ScoreRow, state: SessionState) -> ScoreRow:
    """Return a score row as the participant may see it."""
    if not state.scores_hidden or row.raw is None:
        return row
    return replace(row, raw=None, normalised=None, change=None, message=HIDDEN_MESSAGE, details_sha256=None)
