"""What the recorded shells had on their screens at a moment of a record."""

from __future__ import annotations

from sessions.record.store import Record
from sessions.recording.player import Player
from sessions.recording.screen import Screen
from workbench.review.moments import Moment


class Terminals:
    """The recordings of one record, each with a place that only moves when asked."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._players: dict[int, Player] = {}

    def screen(self, number: int, moment: Moment) -> Screen:
        """Return what recording `number` showed.

        Raises:
            RecordingUnreadable: there is no such recording.
        """
        if number not in self._players:
            self._players[number] = Player(self._record.recordings / str(number))
        return self._players[number].screen_at(moment.now.boottime)


def recordings_at(moment: Moment) -> list[int]:
    """Return the numbers of recorded shells begun before a moment, those still open last."""
    shells = sorted((s for s in moment.state.shells if s.recording is not None), key=lambda s: not s.closed)
    return [shell.recording for shell in shells if shell.recording is not None]
