"""The recorder: a shell outlives terminals and hosts, and everything it showed is in the record."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from sessions.record.events import HealthChanged, Light, RecordingGap, ShellClosed, ShellOpened
from sessions.recording.flood import Limits
from sessions.recording.format import Kind, MarkerKind, unpack_marker
from sessions.recording.handle import RecorderHandle, RecorderNotStarted, Recorders
from sessions.recording.player import screen_at
from sessions.recording.reader import Recording
from sessions.recording.recorder import boottime
from sessions.recording.verifying import verify
from sessions.recording.wire import Frame
from tests.sessions.recording_support import FakeTerminal, shell_request
from tests.waiting import wait_until

END = 1 << 62


@pytest.fixture
async def recorders(tmp_path: Path) -> AsyncIterator[Recorders]:
    found = Recorders(tmp_path / "recordings", boottime=boottime)
    yield found
    await found.stop()


def status_of(handle: RecorderHandle):
    status = handle.status()
    assert status is not None
    return status


def closed(recorders: Recorders) -> ShellClosed:
    """Wait for the one shell to close; other news on the way is dropped."""
    found: list[ShellClosed] = []

    def look() -> bool:
        found.extend(event for event in recorders.poll() if isinstance(event, ShellClosed))
        return bool(found)

    wait_until(look, what="a closed shell")
    return found[0]


def markers(folder: Path) -> list[MarkerKind]:
    return [unpack_marker(c.payload).what for c in Recording(folder).chunks() if c.kind is Kind.MARKER]


async def test_a_shell_is_recorded_from_its_first_byte_to_its_exit_code(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    assert recorders.poll() == [ShellOpened(1, "/bin/sh", status_of(handle).shell_pid)]
    terminal = FakeTerminal(handle.socket)
    terminal.wait_for(b"$ ")
    terminal.type(b"echo hello-$((40+2)); exit 7\n")
    assert terminal.wait_for_frame(Frame.EXIT) == b'{"exit_code":7}'
    event = closed(recorders)
    output = b"".join(Recording(handle.folder).output())
    assert (event.exit_code, event.bytes) == (7, len(output))
    assert b"hello-42" in output
    assert output == terminal.output
    assert verify(handle.folder, event.sha256) == ()
    assert markers(handle.folder)[0] == "opened"
    assert markers(handle.folder)[-1] == "closed"


async def test_a_killed_terminal_costs_nothing_and_the_next_one_sees_the_same_screen(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    first = FakeTerminal(handle.socket)
    first.type(b"printf 'on screen\\n'; cd /; X=kept\n")
    first.wait_for(b"on screen\r\n$ ")
    first.close()
    wait_until(lambda: not status_of(handle).attached)
    second = FakeTerminal(handle.socket)
    second.wait_for(b"on screen")
    second.type(b"echo $X-$PWD\n")
    second.wait_for(b"kept-/")


async def test_a_shell_whose_terminal_was_killed_waits_for_the_next_one(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path, command="the shell"))
    terminal = FakeTerminal(handle.socket)
    terminal.wait_for(b"$ ")
    wait_until(lambda: recorders.waiting() is None)
    terminal.close()
    wait_until(lambda: recorders.waiting() is handle)
    assert status_of(handle).command == "the shell"


async def test_a_second_terminal_takes_the_shell_over_and_the_first_is_told(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    first = FakeTerminal(handle.socket)
    first.wait_for(b"$ ")
    second = FakeTerminal(handle.socket)
    first.wait_for_frame(Frame.TAKEN)
    second.type(b"echo mi''ne\n")
    second.wait_for(b"mine")


async def test_the_shell_gets_the_size_of_the_terminal(recorders: Recorders, tmp_path: Path) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    terminal = FakeTerminal(handle.socket, rows=33, cols=101)
    terminal.type(b"stty size\n")
    terminal.wait_for(b"33 101")
    terminal.resize(20, 60)
    terminal.type(b"stty size\n")
    terminal.wait_for(b"20 60")
    screen = screen_at(tmp_path, 1, END)
    assert (screen.rows, screen.cols) == (20, 60)


async def test_a_restarted_host_finds_its_recorders_again(tmp_path: Path, recorders: Recorders) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    recorders.poll()
    after_restart = Recorders(tmp_path / "recordings", boottime=boottime)
    after_restart.adopt([])
    # A log that was cut off before `shell_opened` gets it now.
    assert after_restart.poll() == [ShellOpened(1, "/bin/sh", status_of(handle).shell_pid)]
    terminal = FakeTerminal(after_restart.live[0].socket)
    terminal.type(b"exit 4\n")
    assert closed(after_restart).exit_code == 4


async def test_a_recorder_survives_the_death_of_what_started_it(tmp_path: Path) -> None:
    """kill -9 of the host: its process is gone, the shell and its recorder are not."""
    import subprocess
    import sys

    program = """
import asyncio, sys, os, signal
from pathlib import Path
from sessions.recording.handle import Recorders
from sessions.recording.recorder import boottime
from tests.sessions.recording_support import shell_request
async def main():
    folder = Path(sys.argv[1])
    await Recorders(folder / "recordings", boottime=boottime).start(shell_request(folder))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    host = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", program, str(tmp_path)], check=False
    )
    assert host.returncode == -signal.SIGKILL
    recorders = Recorders(tmp_path / "recordings", boottime=boottime)
    recorders.adopt([])
    terminal = FakeTerminal(recorders.live[0].socket)
    terminal.type(b"echo still-$((1+1))\n")
    terminal.wait_for(b"still-2")
    events = [*recorders.poll(), *(await recorders.stop())]
    assert [type(event) for event in events] == [ShellOpened, ShellClosed]


async def test_a_killed_recorder_hangs_the_shell_up_and_turns_the_light_red(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    recorders.poll()
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"echo before\n")
    terminal.wait_for(b"before\r\nbefore")
    status = status_of(handle)
    shell = psutil.Process(status.shell_pid)
    os.kill(status.pid, signal.SIGKILL)
    wait_until(lambda: not shell.is_running() or shell.status() == psutil.STATUS_ZOMBIE)
    events: list[object] = []
    wait_until(lambda: events.extend(recorders.poll()) or len(events) >= 3)
    gap, shell_closed, health = events
    assert isinstance(gap, RecordingGap)
    assert isinstance(shell_closed, ShellClosed)
    assert (shell_closed.exit_code, shell_closed.bytes > 0) == (None, True)
    assert isinstance(health, HealthChanged)
    assert health.light is Light.RED
    assert b"before" in b"".join(Recording(handle.folder).output())
    assert verify(handle.folder, shell_closed.sha256) == ()


async def test_a_recorder_that_hangs_turns_the_light_red(recorders: Recorders, tmp_path: Path) -> None:
    late = 0
    watched = Recorders(tmp_path / "recordings", boottime=lambda: boottime() + late)
    await watched.start(shell_request(tmp_path))
    assert [type(event) for event in watched.poll()] == [ShellOpened]
    late = 6_000_000_000
    (event,) = watched.poll()
    assert isinstance(event, HealthChanged)
    assert event.light is Light.RED
    assert "has said nothing for" in event.reason
    late = 0
    assert watched.poll() == [HealthChanged(event.part, Light.GREEN)]
    await watched.stop()


async def test_stopping_ends_the_shell_and_everything_it_started(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"trap '' HUP; (trap '' HUP TERM; exec sleep 600) & echo pid=$!.\n")
    terminal.wait_for(b"pid=")
    wait_until(lambda: terminal.read() or b"." in terminal.output.rpartition(b"pid=")[2])
    stubborn = psutil.Process(int(terminal.output.rpartition(b"pid=")[2].partition(b".")[0]))
    events = await recorders.stop()
    assert isinstance(events[-1], ShellClosed)
    wait_until(lambda: not stubborn.is_running() or stubborn.status() == psutil.STATUS_ZOMBIE)
    assert verify(handle.folder, events[-1].sha256) == ()


async def test_a_program_that_is_not_there_is_said_to_be_so(recorders: Recorders, tmp_path: Path) -> None:
    with pytest.raises(RecorderNotStarted, match=r"/no/such/shell could not be started .*: No such file"):
        await recorders.start(shell_request(tmp_path, ("/no/such/shell",)))


async def test_a_flood_is_one_gap_while_the_terminal_gets_everything(
    recorders: Recorders, tmp_path: Path
) -> None:
    limits = Limits(bytes_per_second=100_000, burst_bytes=200_000)
    handle = await recorders.start(shell_request(tmp_path, limits=limits))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"head -c 3000000 /dev/zero | tr '\\0' x; echo; echo do''ne\n")
    terminal.wait_for(b"done")
    assert terminal.output.count(b"x") >= 3_000_000
    news: list[object] = []
    wait_until(lambda: news.extend(recorders.poll()) or any(isinstance(e, RecordingGap) for e in news))
    (gap,) = [event for event in news if isinstance(event, RecordingGap)]
    recorded = b"".join(Recording(handle.folder).output())
    assert gap.bytes_lost + len(recorded) == len(terminal.output)
    assert len(recorded) < 500_000
    # The end of the flood is kept, so that a replay shows what the participant saw when it was over.
    assert b"done" in recorded
    assert "faster than" in gap.why


async def test_a_budget_that_is_used_up_stops_the_recording_and_says_so(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path, limits=Limits(budget_bytes=10_000)))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"seq 1 5000; echo do''ne\n")
    terminal.wait_for(b"done")
    events: list[object] = []
    wait_until(lambda: events.extend(recorders.poll()) or any(isinstance(e, HealthChanged) for e in events))
    health = next(event for event in events if isinstance(event, HealthChanged))
    assert health.light is Light.AMBER
    assert "budget" in health.reason
    assert len(b"".join(Recording(handle.folder).output())) <= 10_000


async def test_input_is_not_recorded_by_default(recorders: Recorders, tmp_path: Path) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"true\n")
    terminal.wait_for(b"$ true\r\n$ ")
    assert all(chunk.kind not in (Kind.INPUT, Kind.ECHO) for chunk in Recording(handle.folder).chunks())


async def test_a_password_is_never_recorded_even_where_input_is(recorders: Recorders, tmp_path: Path) -> None:
    handle = await recorders.start(shell_request(tmp_path, record_input=True))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"stty -echo; echo pass''word:; read X; stty echo; echo th''anks\n")
    terminal.wait_for(b"password:")
    terminal.type(b"hunter2\n")
    terminal.wait_for(b"thanks")
    terminal.type(b"true\n")
    terminal.wait_for(b"true\r\n$ ")
    kinds = [
        (c.kind, c.payload) for c in Recording(handle.folder).chunks() if c.kind in (Kind.INPUT, Kind.ECHO)
    ]
    assert kinds[1:] == [(Kind.ECHO, b"\0"), (Kind.ECHO, b"\1"), (Kind.INPUT, b"true\n")]
    everything = b"".join(c.payload for c in Recording(handle.folder).chunks())
    assert b"hunter2" not in everything


async def test_a_terminal_that_stops_reading_makes_the_shell_wait_and_loses_nothing(
    recorders: Recorders, tmp_path: Path
) -> None:
    handle = await recorders.start(shell_request(tmp_path))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"seq 1 400000; echo do''ne\n")
    sizes: list[int] = []

    def stands_still() -> bool:
        sizes.append(status_of(handle).output_bytes)
        return len(sizes) > 250 and len(set(sizes[-200:])) == 1 and sizes[-1] > 0

    wait_until(stands_still)
    assert sizes[-1] < 2_000_000
    terminal.wait_for(b"done", seconds=60)
    assert b"\r\n399999\r\n400000\r\n" in terminal.output


async def test_something_that_does_not_speak_the_protocol_is_shown_the_door(
    recorders: Recorders, tmp_path: Path
) -> None:
    import socket

    handle = await recorders.start(shell_request(tmp_path))
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(str(handle.socket))
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    stranger.settimeout(10)
    assert stranger.recv(100) == b""
    terminal = FakeTerminal(handle.socket)
    terminal.wait_for(b"$ ")
