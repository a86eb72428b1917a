"""Commands an agent has executed in the work folder: limited in time and output, and on record."""

from __future__ import annotations

import asyncio
import signal
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from environments.machine.processes import kill_tree, signal_tree
from sessions.host.participants import Participant
from sessions.record.events import ClockPaused, CommandRun, Event
from sessions.record.log import Journal
from sessions.record.state import Phase
from sessions.record.store import Record

SHOWN_BYTES = 65_536
KEPT_BYTES = 16 * 1024 * 1024


class Commands:
    """Runs shell commands for participants without a terminal."""

    def __init__(self, record: Record, journal: Journal, participant: Participant) -> None:
        self._record = record
        self._journal = journal
        self._participant = participant
        self._running: set[int] = set()
        self._held = False
        journal.subscribe(self._follow_the_clock)

    async def run(self, command: str, timeout: float | None, by: str) -> dict[str, Any]:
        """Run `command` in bash in the work folder; the whole process group ends with it or after `timeout` seconds.

        Without a limit it may go on until the session's end.
        """
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *self._participant.command(["bash", "-c", command], terminal=False),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._journal.state.opened.work_tree,
            env=self._participant.variables(),
            start_new_session=True,
        )
        self._running.add(process.pid)
        if self._held:
            signal_tree(process.pid, signal.SIGSTOP)
        output = _Output(self._place())
        try:
            timed_out = await _read_all(process, output, timeout)
        finally:
            kill_tree(process.pid)
            self._running.discard(process.pid)
            await process.wait()
            output.close()
        event = CommandRun(
            command=command,
            exit_code=None if timed_out else process.returncode,
            timed_out=timed_out,
            seconds=round(time.monotonic() - began, 3),
            output_bytes=output.total,
            output_sha256=output.digest,
            truncated=output.total > SHOWN_BYTES,
        )
        self._journal.append(event, by)
        return {
            "exit_code": event.exit_code,
            "timed_out": timed_out,
            "output": output.shown(),
            "output_bytes": event.output_bytes,
            "truncated": event.truncated,
            "seconds": event.seconds,
        }

    def _place(self) -> Path:
        folder = self._record.folder / "commands"
        folder.mkdir(exist_ok=True)
        return folder / f"{self._journal.state.commands}-{time.monotonic_ns():x}.out"

    def _follow_the_clock(self, event: Event, _line: bytes) -> None:
        """Hold commands while the clock stands: what they do then would cost no time."""
        if isinstance(event.body, ClockPaused):
            self._held = True
            self.hold()
        elif self._held and self._journal.state.phase is not Phase.PAUSED:
            self._held = False
            for group in tuple(self._running):
                signal_tree(group, signal.SIGCONT)

    def hold(self) -> None:
        """Stop whatever runs, if the clock stands; again and again, for a process may have been born meanwhile."""
        if self._held:
            for group in tuple(self._running):
                signal_tree(group, signal.SIGSTOP)

    def kill_all(self) -> None:
        """End every command that still runs: the deadline has come."""
        for group in tuple(self._running):
            kill_tree(group)


class _Output:
    """Keeps what a command printed: all of it hashed, most of it stored, its two ends shown."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._hash = sha256()
        self._head = b""
        self._tail = b""
        self.total = 0

    def add(self, chunk: bytes) -> None:
        if self.total < KEPT_BYTES:
            self._file.write(chunk[: KEPT_BYTES - self.total])
        self.total += len(chunk)
        self._hash.update(chunk)
        room = SHOWN_BYTES // 2 - len(self._head)
        self._head += chunk[: max(0, room)]
        self._tail = (self._tail + chunk[max(0, room) :])[-SHOWN_BYTES // 2 :]

    def shown(self) -> str:
        """Return the output as text; what is left out of the middle is said."""
        left_out = self.total - len(self._head) - len(self._tail)
        middle = f"\n… {left_out} bytes left out …\n".encode() if left_out > 0 else b""
        return (self._head + middle + self._tail).decode(errors="replace")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        self._file.close()


async def _read_all(process: asyncio.subprocess.Process, output: _Output, timeout: float | None) -> bool:
    """Feed `output` until the command ends; returns whether it ran out of time."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(timeout):
            while chunk := await process.stdout.read(65_536):
                output.add(chunk)
            await process.wait()
    except TimeoutError:
        return True
    return False
