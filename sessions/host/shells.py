"""Recorded shells of a live session: opened on request, each with a recorder of its own."""

from __future__ import annotations

import os
from pathlib import Path

from sessions.clients.protocol import Fault, Refusal
from sessions.host.participants import Participant
from sessions.record.events import ShellOpened
from sessions.record.log import Journal
from sessions.record.state import Phase
from sessions.record.store import Record
from sessions.recording.foreign import ForeignWatch
from sessions.recording.handle import RecorderNotStarted, Recorders, ShellRequest

FOREIGN_LOOKS = 20
"""Shells we did not open are looked for at every so many looks."""


class Shells:
    """Opens the participant's shells, follows their recorders, notices shells nobody records."""

    def __init__(self, record: Record, journal: Journal, participant: Participant) -> None:
        self._record = record
        self._journal = journal
        self._participant = participant
        self._recorders = Recorders(record.recordings, boottime=lambda: journal.clock.now().boottime)
        self._work_tree = Path(journal.state.opened.work_tree)
        self._foreign = ForeignWatch(self._work_tree, record.session)
        self._looks = 0

    def adopt(self) -> None:
        """Find again, after a restart, the recorders that went on without a host."""
        self._recorders.adopt(self._journal.events())

    async def open(self) -> Path:
        """Start a recorded shell in the work folder, or find one that was left running; returns its socket.

        Raises:
            Refusal: the work has not begun or is over, or the shell did not start.
        """
        phase = self._journal.state.phase
        if phase not in (Phase.RUNNING, Phase.PAUSED):
            raise Refusal(f"cannot open a shell: the session is {phase}")
        left = self._recorders.waiting()
        if left is not None and left.socket is not None:
            return left.socket
        number = 1 + max((s.recording or 0 for s in self._journal.state.shells), default=0)
        request = ShellRequest(
            cwd=self._work_tree,
            argv=tuple(self._participant.command([_shell()], terminal=True)),
            environment=self._participant.variables(),
            socket=self._record.shell_socket(number),
            participant=self._participant.user_id,
            session=self._record.session,
            command=_shell(),
        )
        request.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        try:
            handle = await self._recorders.start(request, log=self._record.host_log)
        except RecorderNotStarted as error:
            raise Refusal(f"the recorded shell did not start: {error}", Fault.INFRASTRUCTURE) from error
        self.look()
        return handle.socket or request.socket

    def look(self) -> None:
        """Write what became of the recorders since the last look."""
        for body in self._recorders.poll():
            self._journal.append(body)
        self._looks += 1
        if self._looks % FOREIGN_LOOKS == 0 and self._journal.state.phase is Phase.RUNNING:
            self._note_foreign_shells()

    def _note_foreign_shells(self) -> None:
        recorders = (handle.status() for handle in self._recorders.live)
        ours = {os.getpid(), *(status.pid for status in recorders if status is not None)}
        known = {shell.pid for shell in self._journal.state.shells if shell.recording is None}
        for shell in self._foreign.look(ours):
            if shell.pid not in known:
                self._journal.append(ShellOpened(None, shell.command, shell.pid))

    async def close_all(self) -> None:
        """End every shell and close its recording."""
        for body in await self._recorders.stop():
            self._journal.append(body)


def _shell() -> str:
    return os.environ.get("SHELL") or "/bin/bash"
