"""What a proctor may do to a live session; every act is an event with who and why."""

from __future__ import annotations

from sessions.clients.protocol import Fault, Refusal
from sessions.host.ending import Ending
from sessions.record.events import ClockPaused, CorrectionMade, MessageSent, PauseReason, TimeCredited
from sessions.record.log import Journal
from sessions.record.state import Phase


class Proctoring:
    """A proctor's hand in a live session."""

    def __init__(self, journal: Journal, ending: Ending) -> None:
        self._journal = journal
        self._ending = ending

    def credit(self, milliseconds: int, why: str, by: str) -> None:
        """Give time back (positive) or take it (negative); never while nothing is left to change."""
        if self._journal.state.phase in (Phase.FINISHING, Phase.CLOSED):
            raise Refusal("cannot credit time: the work is over")
        if milliseconds == 0 or not why.strip():
            raise Refusal(
                "cannot credit time: it needs an amount other than 0 and a reason", Fault.BAD_PARAMETERS
            )
        self._journal.append(TimeCredited(milliseconds, why), by)

    def correct(self, seq: int, what: str, why: str, by: str) -> None:
        """Note beside event `seq` what was really so; the event itself stays."""
        last = self._journal.state.last_seq
        if not 0 <= seq <= last:
            raise Refusal(f"cannot correct event {seq}: the log ends at {last}", Fault.BAD_PARAMETERS)
        self._journal.append(CorrectionMade(seq, what, why), by)

    def message(self, text: str, by: str) -> int:
        """Send the participant a message; returns its number."""
        number = len(self._journal.state.messages) + 1
        self._journal.append(MessageSent(number, text), by)
        return number

    def end(self, why: str, by: str) -> None:
        """Stop the session whatever its phase; what is there stays."""
        phase = self._journal.state.phase
        if phase is Phase.CLOSED:
            raise Refusal("the session is closed already")
        if phase is Phase.RUNNING:
            self._journal.append(ClockPaused(PauseReason.PROCTOR, why), by)
        self._ending.break_off(f"ended by {by}: {why}")
