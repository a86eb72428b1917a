"""What is recorded when there is too much of it, or nowhere to put it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from sessions.record.clock import ManualClock
from sessions.record.events import Light
from sessions.recording.flood import FloodGate, Limits
from sessions.recording.format import Kind, unpack_marker
from sessions.recording.reader import Recording
from sessions.recording.tape import Tape
from sessions.recording.writer import SegmentWriter

SECOND = 1_000_000_000
LIMITS = Limits(bytes_per_second=1000, burst_bytes=5000, budget_bytes=100_000)


def test_a_burst_within_the_allowance_is_kept() -> None:
    gate = FloodGate(LIMITS, 0)
    assert [gate.admits(1000, 0) for _ in range(5)] == [None] * 5


def test_a_steady_rate_is_kept_for_good() -> None:
    gate = FloodGate(LIMITS, 0)
    assert all(gate.admits(100, n * SECOND // 10) is None for n in range(900))


def test_a_flood_shuts_the_gate_once_however_long_it_lasts() -> None:
    gate = FloodGate(LIMITS, 0)
    answers = [gate.admits(1000, n * SECOND // 10) is None for n in range(200)]
    assert answers == [True] * 5 + [False] * 195


def test_the_gate_opens_again_when_the_flood_is_over() -> None:
    gate = FloodGate(LIMITS, 0)
    for n in range(100):
        gate.admits(1000, n * SECOND // 10)
    assert gate.admits(10, 11 * SECOND) is not None
    assert gate.admits(10, 13 * SECOND) is None


def test_one_chunk_larger_than_the_burst_does_not_shut_it_for_ever() -> None:
    gate = FloodGate(LIMITS, 0)
    assert gate.admits(6000, 0) is not None
    assert gate.admits(10, 2 * SECOND) is not None
    assert gate.admits(10, 4 * SECOND) is None


def test_a_budget_that_is_used_up_stays_used_up() -> None:
    gate = FloodGate(Limits(budget_bytes=1000), 0)
    assert gate.admits(900, 0) is None
    assert "budget of 1000 bytes is used up" in (gate.admits(200, 0) or "")
    assert gate.admits(0, 1000 * SECOND) is not None


class Disk:
    """A tape on a disk that can be full."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.folder = folder
        self.full = False
        writer = SegmentWriter(
            folder, recording=1, command="sh", size=(24, 80), clock=self.clock, nanoseconds=self._now
        )
        append = writer.append

        def append_if_room(kind: Kind, payload: bytes) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            append(kind, payload)

        monkeypatch.setattr(writer, "append", append_if_room)
        self.tape = Tape(writer, FloodGate(Limits(), self._now()), self._now)

    def _now(self) -> int:
        return self.clock.now().boottime

    def recorded(self) -> list[object]:
        return [
            unpack_marker(chunk.payload) if chunk.kind is Kind.MARKER else chunk.payload
            for chunk in Recording(self.folder).chunks()
            if chunk.kind is not Kind.RESIZE
        ]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def test_a_full_disk_is_tried_again_every_second_and_the_gap_is_counted(disk: Disk) -> None:
    disk.tape.output(b"before")
    disk.full = True
    disk.tape.output(b"x" * 100_000)
    disk.tape.output(b"y" * 70_000)
    assert disk.tape.light() == (Light.RED, "not recording: No space left on device")
    disk.clock.advance(1.1)
    disk.tape.tick()
    assert disk.tape.gap_open is not None
    disk.full = False
    disk.tape.tick()
    assert disk.tape.gap_open is not None, "within a second of the last try it does not ask the disk again"
    disk.clock.advance(1.1)
    disk.tape.tick()
    assert disk.tape.light() == (Light.GREEN, "")
    assert (disk.tape.gaps, disk.tape.bytes_lost) == (1, 100_000)
    disk.tape.close()
    before, gap, kept = disk.recorded()
    assert before == b"before"
    assert gap.bytes_lost == 100_000
    assert kept == b"y" * 70_000


def test_sizes_and_marks_during_a_full_disk_are_written_late_and_not_lost(disk: Disk) -> None:
    disk.full = True
    disk.tape.output(b"lost and kept")
    disk.tape.resized(50, 132)
    disk.full = False
    disk.clock.advance(2)
    disk.tape.output(b"after")
    disk.tape.close()
    sizes = [chunk.payload for chunk in Recording(disk.folder).chunks() if chunk.kind is Kind.RESIZE]
    assert sizes[-1] == b"\x32\x00\x84\x00"
    assert disk.recorded()[-1] == b"after"


def test_a_disk_that_fills_again_while_a_gap_ends_makes_a_second_gap(disk: Disk) -> None:
    disk.full = True
    disk.tape.output(b"kept")
    disk.full = False
    disk.clock.advance(2)
    disk.tape.tick()
    disk.full = True
    disk.tape.output(b"again")
    disk.full = False
    disk.clock.advance(2)
    disk.tape.tick()
    assert disk.tape.gaps == 2
    assert disk.tape.bytes_lost == 0
    disk.tape.close()
    assert [item for item in disk.recorded() if isinstance(item, bytes)] == [b"kept", b"again"]
