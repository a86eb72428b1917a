"""The host's side of its recorders: start them, find them again, and hear what became of them as events."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from sessions.record.clock import boot_id
from sessions.record.events import (
    Body,
    Event,
    HealthChanged,
    Light,
    Part,
    RecordingGap,
    ShellClosed,
    ShellOpened,
)
from sessions.recording.flood import Limits
from sessions.recording.foreign import RECORDING_VARIABLE
from sessions.recording.reader import RecordingUnreadable, figures_of, segment_numbers
from sessions.recording.standing import RecorderStatus, Stage, read_status
from sessions.recording.writer import Rotation

SILENT_NS = 4_000_000_000
"""A recorder that says nothing for so long is in trouble."""
_START_SECONDS = 15.0
_LIGHTS = (Light.GREEN, Light.AMBER, Light.RED)


class RecorderNotStarted(Exception):
    """No recorded shell came up; the message says why."""


class Seen(msgspec.Struct, frozen=True):
    """What the log already holds about one recording."""

    opened: bool = False
    gaps: int = 0
    bytes_lost: int = 0


class ShellRequest(msgspec.Struct, frozen=True):
    """A shell somebody asked for."""

    cwd: Path
    argv: tuple[str, ...]
    """Already wrapped for isolation."""
    environment: Mapping[str, str]
    socket: Path
    rows: int = 24
    cols: int = 80
    record_input: bool = False
    participant: int | None = None
    """User id, where the participant is another user."""
    session: str = ""
    """Named in the shell's environment, so that what it leaves behind is known as its own."""
    command: str = ""
    """What the record calls it; by default the words of `argv`, which isolation may have made many."""
    limits: Limits = Limits()
    rotation: Rotation = Rotation()


class RecorderHandle:
    """One recorder as the host sees it."""

    def __init__(
        self,
        folder: Path,
        number: int,
        *,
        boottime: Callable[[], int],
        seen: Seen | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.folder = folder
        self.number = number
        self.closed = False
        self._boottime = boottime
        self._seen = seen or Seen()
        self._process = process
        self.light, self.reason = Light.GREEN, ""

    @classmethod
    async def start(
        cls,
        folder: Path,
        number: int,
        request: ShellRequest,
        *,
        boottime: Callable[[], int],
        log: Path | None = None,
    ) -> RecorderHandle:
        """Start a recorder and wait until its shell runs.

        Raises:
            RecorderNotStarted: the recorder or the program in it did not start.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240
        except OSError as error:
            raise RecorderNotStarted(f"no place to record to: {error}") from error
        if segment_numbers(folder):
            raise RecorderNotStarted(f"recording {number} exists already in {folder}; a shell gets a new one")
        problems = folder / "recorder.err" if log is None else log
        with problems.open("ab") as err:
            process = subprocess.Popen(  # noqa: ASYNC220  (returns as soon as it has forked)
                command_of(folder, number, request),
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=err,
                cwd=_package_root(), env=_own_environment(), start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            # Not on the command line, which everybody on the machine may read.
            mark = {RECORDING_VARIABLE: f"{request.session}/{number}"} if request.session else {}
            process.stdin.write(msgspec.json.encode({**request.environment, **mark}))
        handle = cls(folder, number, boottime=boottime, process=process)
        await handle._until_open()
        return handle

    async def _until_open(self) -> None:
        assert self._process is not None
        for _ in range(round(_START_SECONDS / 0.02)):
            status = self.status()
            if status is not None and status.stage is Stage.FAILED:
                self._process.wait()
                raise RecorderNotStarted(status.reason)
            if status is not None and status.stage is not Stage.OPENING:
                return
            if self._process.poll() is not None:
                raise RecorderNotStarted(
                    f"the recorder of recording {self.number} ended with code {self._process.returncode} before its "
                    f"shell ran; what it said is in the host's log or in {self.folder / 'recorder.err'}"
                )
            await asyncio.sleep(0.02)
        self._process.kill()
        raise RecorderNotStarted(
            f"the shell of recording {self.number} did not run within {_START_SECONDS:.0f} s"
        )

    @property
    def socket(self) -> Path | None:
        """Where a terminal attaches, while the shell runs."""
        status = self.status()
        return Path(status.socket) if status is not None and status.stage is Stage.OPEN else None

    def status(self) -> RecorderStatus | None:
        status = read_status(self.folder)
        return None if status is None or status.boot_id != boot_id() else status

    def poll(self) -> list[Body]:
        """Return what has happened since the last poll: shell opened, gaps, shell closed. Cheap; never waits."""
        if self.closed:
            return []
        if self._process is not None:
            self._process.poll()
        status = self.status()
        if status is None:
            return self._died(read_status(self.folder), "the recorder was cut off")
        events = [*self._opening(status), *self._new_gaps(status)]
        if status.stage in (Stage.CLOSED, Stage.FAILED):
            self.closed = True
            self.light, self.reason = Light.GREEN, ""
            events.append(
                ShellClosed(
                    self.number, status.shell_pid or 0, status.exit_code, status.output_bytes, status.sha256
                )
            )
        elif not status.alive:
            events += self._died(status, "the recorder died; its shell was hung up")
        else:
            self.light, self.reason = self._health(status)
        return events

    def _opening(self, status: RecorderStatus) -> list[Body]:
        if self._seen.opened or status.shell_pid is None:
            return []
        self._seen = msgspec.structs.replace(self._seen, opened=True)
        return [ShellOpened(self.number, status.command, status.shell_pid)]

    def _new_gaps(self, status: RecorderStatus) -> list[Body]:
        if status.gaps <= self._seen.gaps:
            return []
        count, lost = status.gaps - self._seen.gaps, status.bytes_lost - self._seen.bytes_lost
        self._seen = msgspec.structs.replace(self._seen, gaps=status.gaps, bytes_lost=status.bytes_lost)
        why = status.last_gap if count == 1 else f"{count} gaps, the last: {status.last_gap}"
        return [RecordingGap(self.number, why, lost)]

    def _health(self, status: RecorderStatus) -> tuple[Light, str]:
        silent = self._boottime() - status.heartbeat
        if silent > SILENT_NS:
            return Light.RED, f"the recorder has said nothing for {silent / 1e9:.0f} s"
        return status.light, status.reason

    def _died(self, status: RecorderStatus | None, why: str) -> list[Body]:
        self.closed = True
        self.light, self.reason = Light.RED, f"recording {self.number}: {why}"
        try:
            figures = figures_of(self.folder)
            count, digest = figures.output_bytes, figures.sha256
        except RecordingUnreadable:
            count, digest = 0, None
        pid = 0 if status is None or status.shell_pid is None else status.shell_pid
        return [RecordingGap(self.number, why), ShellClosed(self.number, pid, None, count, digest)]

    async def stop(self, patience: float = 10.0) -> list[Body]:
        """End the shell and all it started, close the recording, and return the last events."""
        status = self.status()
        events = self.poll()
        if self.closed or status is None or not status.alive:
            return events
        os.kill(status.pid, signal.SIGTERM)
        deadline = self._boottime() + round(patience * 1e9)
        while self._boottime() < deadline:
            await asyncio.sleep(0.02)
            events += (last := self.poll())
            if any(isinstance(event, ShellClosed) for event in last):
                break
        else:
            os.kill(status.pid, signal.SIGKILL)
            await asyncio.sleep(0.1)
            events += self.poll()
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        return events


class Recorders:
    """All recorders of one session, with one light for them together."""

    def __init__(self, folder: Path, *, boottime: Callable[[], int]) -> None:
        self._folder = folder
        self._boottime = boottime
        self._handles: dict[int, RecorderHandle] = {}
        self._told: tuple[Light, str] = (Light.GREEN, "")
        self._accident = ""

    @property
    def live(self) -> tuple[RecorderHandle, ...]:
        """Those whose shells run, oldest first."""
        return tuple(handle for handle in self._handles.values() if not handle.closed)

    def waiting(self) -> RecorderHandle | None:
        """Return the oldest live one that no terminal is attached to: left running, or its terminal was killed."""
        for handle in self.live:
            status = handle.status()
            if status is not None and status.stage is Stage.OPEN and status.alive and not status.attached:
                return handle
        return None

    def adopt(self, events: Iterable[Event]) -> None:
        """Take up, after a host's restart, every recorder the log does not know as closed.

        `poll` then tells what became of them meanwhile.
        """
        seen, closed = seen_in(events)
        for number in sorted(self._numbers() - closed):
            self._handles[number] = RecorderHandle(
                self._folder / str(number),
                number,
                boottime=self._boottime,
                seen=seen.get(number, Seen()),
            )

    async def start(self, request: ShellRequest, *, log: Path | None = None) -> RecorderHandle:
        """Start a recorded shell under the next free number; `poll` then tells that it opened.

        Raises:
            RecorderNotStarted: the recorder or the program in it did not start.
        """
        number = max(self._numbers(), default=0) + 1
        handle = await RecorderHandle.start(
            self._folder / str(number), number, request, boottime=self._boottime, log=log
        )
        self._handles[number] = handle
        self._accident = ""
        return handle

    def poll(self) -> list[Body]:
        """Return what has happened since the last poll, as bodies to append to the log; call it every second."""
        events: list[Body] = []
        for handle in self.live:
            events += handle.poll()
            if handle.closed and handle.light is Light.RED:
                self._accident = handle.reason
        return events + self._light()

    def _light(self) -> list[Body]:
        found = [(handle.light, handle.reason) for handle in self.live]
        if self._accident:
            found.append((Light.RED, self._accident))
        now = max(found, key=lambda pair: _LIGHTS.index(pair[0]), default=(Light.GREEN, ""))
        # The reason of a silent recorder counts seconds: only a change of colour is news.
        if now[0] is self._told[0]:
            return []
        self._told = now
        return [HealthChanged(Part.RECORDER, *now)]

    async def stop(self) -> list[Body]:
        """End every shell and close every recording."""
        stopped = await asyncio.gather(*(handle.stop() for handle in self.live))
        return [event for events in stopped for event in events]

    def _numbers(self) -> set[int]:
        return {int(path.name) for path in self._folder.glob("*") if path.name.isdecimal()}


def seen_in(events: Iterable[Event]) -> tuple[dict[int, Seen], set[int]]:
    """Return what a log holds about each recording, and which it knows as closed."""
    seen: dict[int, Seen] = {}
    closed: set[int] = set()
    for event in events:
        match event.body:
            case ShellOpened(recording=int(number)):
                seen[number] = msgspec.structs.replace(seen.get(number, Seen()), opened=True)
            case ShellClosed(recording=int(number)):
                closed.add(number)
            case RecordingGap(recording=number, bytes_lost=lost):
                before = seen.get(number, Seen())
                seen[number] = Seen(before.opened, before.gaps + 1, before.bytes_lost + lost)
    return seen, closed


def command_of(folder: Path, number: int, request: ShellRequest) -> list[str]:
    """Return the command line that starts a recorder."""
    encode = msgspec.json.encode
    command = [
        sys.executable, "-m", "sessions.recording.recorder",
        "--record", str(folder), "--number", str(number), "--socket", str(request.socket),
        "--cwd", str(request.cwd), "--environment-on-stdin", "--argv-json", encode(request.argv).decode(),
        "--rows", str(request.rows), "--cols", str(request.cols),
        "--limits-json", encode(request.limits).decode(),
        "--rotation-json", encode(request.rotation).decode(),
    ]  # fmt: skip
    if request.command:
        command += ["--command", request.command]
    if request.record_input:
        command.append("--record-input")
    if request.participant is not None:
        command += ["--participant", str(request.participant)]
    return command


def _own_environment() -> dict[str, str]:
    """What a recorder itself needs: no keys, nothing of the session's."""
    kept = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _package_root() -> Path:
    """Return the folder `sessions` is imported from, so that the recorder finds the same one."""
    return Path(__file__).resolve().parents[2]
