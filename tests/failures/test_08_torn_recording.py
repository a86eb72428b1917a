"""Row 8: a recording whose end was cut off anywhere replays to within a second, and the torn tail is reported."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from sessions.record.clock import ManualClock
from sessions.recording.format import Kind, SegmentDamaged, iter_chunks, read_header
from sessions.recording.player import Player
from sessions.recording.reader import Recording, RecordingUnreadable, figures_of
from sessions.recording.verifying import examine, verify
from sessions.recording.writer import Rotation
from tests.sessions.recording_support import write_recording

pytestmark = pytest.mark.failures

EVERY = 0.25
LINES = [f"\x1b[3{n % 8}mline {n}\x1b[0m ünïcödé\r\n".encode() for n in range(40)]


@pytest.fixture
def recording(tmp_path: Path) -> tuple[Path, bytes]:
    """A recording of several segments whose last one was still being written; and its bytes."""
    folder = tmp_path / "1"
    write_recording(folder, LINES, rotation=Rotation(bytes=700), seconds_apart=EVERY, clock=ManualClock())
    packed = max(folder.glob("*.seg.z"))
    raw = zlib.decompress(packed.read_bytes())
    packed.unlink()
    packed.with_suffix("").write_bytes(raw)
    return packed.with_suffix(""), raw


def test_cut_at_every_byte_it_replays_to_within_a_second_and_the_torn_tail_is_reported(
    recording: tuple[Path, bytes],
) -> None:
    last, raw = recording
    folder = last.parent
    header, first_chunk = read_header(raw)
    ends = [(chunk.boottime, end) for chunk, end in iter_chunks(raw, first_chunk, header.boottime)]
    before = b"".join(
        chunk.payload for number in range(header.segment) for chunk in Recording(folder).segment(number).chunks()
        if chunk.kind is Kind.OUTPUT
    )  # fmt: skip
    for length in range(len(raw)):
        os.truncate(last, length)
        findings = examine(folder)
        assert findings.problems == (), f"cut at {length}: a torn tail is no tampering"
        whole_ends = [first_chunk, *(end for _, end in ends if end <= length)]
        assert (findings.torn is None) == (length in whole_ends), f"cut at {length}"
        replayed = Recording(folder)
        output = b"".join(replayed.output())
        assert output.startswith(before)
        if length >= first_chunk:
            lost_from = next((at for at, end in ends if end > length), None)
            assert lost_from is not None
            assert lost_from - replayed.ended() <= 1_000_000_000
            assert figures_of(folder).output_bytes == len(output)
        last.write_bytes(raw)
    assert examine(folder).torn is None


def test_the_screen_at_the_end_of_a_torn_recording_is_that_of_the_last_whole_chunk(
    recording: tuple[Path, bytes],
) -> None:
    last, raw = recording
    os.truncate(last, len(raw) - 1)
    assert "line 38" in Player(last.parent).screen_at(1 << 62).text()
    assert "line 39" not in Player(last.parent).screen_at(1 << 62).text()
    assert "torn tail" in verify(last.parent)[-1]


def test_a_tail_of_zeros_after_a_power_cut_is_torn_and_not_tampered_with(
    recording: tuple[Path, bytes],
) -> None:
    last, raw = recording
    header, first_chunk = read_header(raw)
    (_, hole), *_ = iter_chunks(raw, first_chunk, header.boottime)
    # One block never reached the disk, the one after it did.
    last.write_bytes(raw[:hole] + bytes(4096) + raw[hole:])
    findings = examine(last.parent)
    assert findings.problems == ()
    assert findings.torn is not None


def test_a_changed_byte_before_whole_chunks_is_tampering_and_no_torn_tail(
    recording: tuple[Path, bytes],
) -> None:
    last, raw = recording
    changed = bytearray(raw)
    changed[len(raw) // 2] ^= 1
    last.write_bytes(changed)
    findings = examine(last.parent)
    assert findings.torn is None
    assert "was changed at byte" in findings.problems[0]


def test_a_recording_that_was_cut_off_in_its_very_first_header_says_so(tmp_path: Path) -> None:
    write_recording(tmp_path / "1", [])
    packed = tmp_path / "1" / "000000.seg.z"
    raw = zlib.decompress(packed.read_bytes())
    packed.unlink()
    for length in (0, 1, 7, 8, 15, 16, 40):
        (tmp_path / "1" / "000000.seg").write_bytes(raw[:length])
        findings = examine(tmp_path / "1")
        assert findings.problems == ()
        assert findings.torn is not None
        with pytest.raises(RecordingUnreadable):
            Recording(tmp_path / "1")
    with pytest.raises(SegmentDamaged, match="cut short"):
        read_header(raw[:12])
