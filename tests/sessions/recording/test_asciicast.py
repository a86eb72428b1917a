"""Exports as asciicast, read back by asciinema itself."""

from __future__ import annotations

import json
import os
import pty
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from sessions.record.clock import ManualClock
from sessions.recording.asciicast import Version, export
from sessions.recording.format import Kind, Marker, MarkerKind, pack_marker, pack_size
from sessions.recording.writer import SegmentWriter
from tests.sessions.recording_support import write_recording


def events(folder: Path, version: Version, *, sanitised: bool = True) -> list[list[object]]:
    target = folder.parent / "out.cast"
    count = export(folder, target, version, sanitised=sanitised)
    header, *found = [json.loads(line) for line in target.read_text().splitlines()]
    assert header["version"] == version
    assert len(found) == count
    return found


@pytest.fixture
def eventful(tmp_path: Path) -> Path:
    """A recording with one of everything."""
    clock = ManualClock()
    folder = tmp_path / "1"
    folder.mkdir()
    writer = SegmentWriter(
        folder,
        recording=1,
        command="sh",
        size=(24, 80),
        clock=clock,
        nanoseconds=lambda: clock.now().boottime,
    )
    for kind, payload in (
        (Kind.MARKER, pack_marker(Marker(MarkerKind.OPENED, "sh", pid=1))),
        (Kind.OUTPUT, b"one\r\n"),
        (Kind.RESIZE, pack_size(30, 100)),
        (Kind.INPUT, b"ls\r"),
        (Kind.ECHO, b"\0"),
        (Kind.MARKER, pack_marker(Marker(MarkerKind.GAP_BEGAN, "flood"))),
        (Kind.MARKER, pack_marker(Marker(MarkerKind.GAP_ENDED, "flood", 77))),
        (Kind.OUTPUT, b"two\r\n"),
        (Kind.MARKER, pack_marker(Marker(MarkerKind.CLOSED, exit_code=3))),
    ):
        clock.advance(0.5)
        writer.append(kind, payload)
    writer.close()
    return folder


def test_version_2_counts_seconds_from_the_beginning(eventful: Path) -> None:
    found = events(eventful, Version.V2)
    assert [event[0] for event in found] == [0.5 * (n + 1) for n in range(9)]
    assert [event[1] for event in found] == ["m", "o", "r", "i", "m", "m", "m", "o", "m"]
    assert found[2][2] == "100x30"


def test_version_3_counts_seconds_since_the_event_before_and_has_the_exit_code(eventful: Path) -> None:
    found = events(eventful, Version.V3)
    assert [event[0] for event in found] == [0.5] * 9
    assert found[-1][1:] == ["x", "3"]


def test_gaps_are_markers_that_say_how_much_is_missing(eventful: Path) -> None:
    assert [0.5 * 7, "m", "recording goes on: 77 bytes lost, flood"] in events(eventful, Version.V2)


def test_a_failed_export_leaves_nothing_half_written(tmp_path: Path) -> None:
    from sessions.recording.reader import RecordingUnreadable

    with pytest.raises(RecordingUnreadable):
        export(tmp_path / "nothing", tmp_path / "out.cast")
    assert not (tmp_path / "out.cast").exists()
    assert not (tmp_path / "out.cast.part").exists()


def in_terminal(command: str, home: Path) -> int:
    """Run a command in a terminal and return its exit code."""
    pid, master = pty.fork()
    if pid == 0:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        os.execve("/bin/sh", ["/bin/sh", "-c", command], environment)
    with suppress(OSError):
        while os.read(master, 4096):
            pass
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(shutil.which("asciinema") is None, reason="asciinema is not installed")
def test_asciinema_prints_an_export_exactly_as_it_was_recorded(tmp_path: Path) -> None:
    chunks = ["\x1b[31mröt\x1b[0m ".encode(), b"a\r\n", "中文 🦀\r\n".encode(), b"\x1b[2J\x1b[Hdone\r\n"]
    write_recording(tmp_path / "1", chunks)
    export(tmp_path / "1", tmp_path / "out.cast", Version.V2, sanitised=False)
    # It asks for the terminal it is in, whatever its output is.
    assert in_terminal(f"asciinema cat {tmp_path / 'out.cast'} > {tmp_path / 'printed'}", tmp_path) == 0
    assert (tmp_path / "printed").read_bytes() == b"".join(chunks)
