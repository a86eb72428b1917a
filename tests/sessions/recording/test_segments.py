"""Segments: written whole or not at all, chained, compressed, and checked."""

from __future__ import annotations

import errno
import os
import zlib
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.record.clock import ManualClock
from sessions.recording.format import (
    Kind,
    SegmentDamaged,
    SegmentHeader,
    iter_chunks,
    pack_chunk_head,
    pack_header,
    read_header,
)
from sessions.recording.reader import Recording, RecordingUnreadable, evidence_of, figures_of, load_segment
from sessions.recording.verifying import examine, verify
from sessions.recording.writer import Rotation, SegmentWriter
from tests.sessions.recording_support import write_recording

SMALL = Rotation(bytes=400, seconds=600)


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A recording of several small segments."""
    folder = tmp_path / "1"
    write_recording(folder, [bytes([65 + n]) * 50 for n in range(26)], rotation=SMALL)
    return folder


def raw_segment(folder: Path, number: int) -> Path:
    """Put the uncompressed form of a segment back, as if it had not been compressed yet."""
    packed = folder / f"{number:06d}.seg.z"
    raw = folder / f"{number:06d}.seg"
    raw.write_bytes(zlib.decompress(packed.read_bytes()))
    packed.unlink()
    return raw


@given(st.lists(st.tuples(st.sampled_from(list(Kind)), st.binary(max_size=300), st.integers(0, 2**60))))
@settings(max_examples=60, deadline=None)
def test_any_chunks_come_back_as_they_were(chunks: list[tuple[Kind, bytes, int]]) -> None:
    header = SegmentHeader(1, 0, "0" * 64, "boot", 5, "2026-01-01T00:00:00.000Z", 0, 24, 80, "sh")
    data = pack_header(header) + b"".join(pack_chunk_head(k, p, d) + p for k, p, d in chunks)
    found, start = read_header(data)
    assert found == header
    assert [(c.kind, c.payload, c.boottime - 5) for c, _ in iter_chunks(data, start, 5)] == chunks


def test_output_comes_back_byte_for_byte_over_many_segments(several: Path) -> None:
    recording = Recording(several)
    assert len(recording.headers) > 3
    assert b"".join(recording.output()) == b"".join(bytes([65 + n]) * 50 for n in range(26))
    assert verify(several) == ()


def test_each_segment_names_the_hash_of_the_one_before(several: Path) -> None:
    recording = Recording(several)
    for number in range(1, len(recording.headers)):
        before = load_segment(several, number - 1).data
        assert recording.headers[number].prev == sha256(before).hexdigest()


def test_closed_segments_are_compressed_and_say_so_by_their_names(several: Path) -> None:
    assert all(path.name.endswith(".seg.z") for path in evidence_of(several))


def test_the_figures_of_a_closed_recording_seal_its_last_segment(tmp_path: Path) -> None:
    figures = write_recording(tmp_path / "1", [b"x" * 100] * 20, rotation=SMALL)
    assert figures.output_bytes == 2000
    assert figures_of(tmp_path / "1") == figures
    assert verify(tmp_path / "1", figures.sha256) == ()


def test_a_quiet_recording_rotates_by_time(tmp_path: Path) -> None:
    write_recording(tmp_path / "1", [b"x"] * 5, rotation=Rotation(seconds=10), seconds_apart=7)
    assert len(Recording(tmp_path / "1").headers) > 2


def test_a_changed_byte_in_a_middle_segment_is_named(several: Path) -> None:
    raw = raw_segment(several, 1)
    data = bytearray(raw.read_bytes())
    data[-60] ^= 1
    raw.write_bytes(data)
    problems = verify(several)
    assert "segment 1 of recording 1 was changed at byte" in problems[0]
    assert any("the chain breaks at segment 2" in problem for problem in problems)


def test_a_rewritten_segment_with_good_check_sums_breaks_the_chain(several: Path) -> None:
    raw = raw_segment(several, 1)
    data = raw.read_bytes()
    header, start = read_header(data)
    forged = b"".join(
        pack_chunk_head(c.kind, c.payload.lower(), c.boottime - header.boottime) + c.payload.lower()
        for c, _ in iter_chunks(data, start, header.boottime)
    )
    raw.write_bytes(data[:start] + forged)
    assert [p.split(":")[0] for p in verify(several)] == ["the chain breaks at segment 2 of recording 1"]


def test_a_missing_segment_is_named(several: Path) -> None:
    (several / "000002.seg.z").unlink()
    assert verify(several) == ("segment 2 of 1 is missing",)


def test_a_missing_end_is_seen_by_the_hash_in_the_log(tmp_path: Path) -> None:
    figures = write_recording(tmp_path / "1", [b"x" * 100] * 20, rotation=SMALL)
    last = evidence_of(tmp_path / "1")[-1]
    last.unlink()
    assert "its end was changed or removed" in verify(tmp_path / "1", figures.sha256)[0]


def test_a_cut_compressed_segment_is_damage_and_no_torn_tail(several: Path) -> None:
    packed = several / "000001.seg.z"
    packed.write_bytes(packed.read_bytes()[:-5])
    findings = examine(several)
    assert findings.torn is None
    assert "does not decompress to its end" in findings.problems[0]


def test_an_empty_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingUnreadable):
        Recording(tmp_path)
    assert verify(tmp_path) == (f"{tmp_path} holds no recording",)


def test_a_segment_of_something_else_is_refused() -> None:
    with pytest.raises(SegmentDamaged, match="does not begin like a segment"):
        read_header(b"PK\x03\x04 and more than enough bytes")


class FullDisk:
    """Refuses writes to segments while it is full, taking half of what is written first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._write = os.pwritev
        monkeypatch.setattr(os, "pwritev", self)

    def __call__(self, fd: int, buffers: tuple[bytes, ...], offset: int) -> int:
        if not self.full:
            return self._write(fd, buffers, offset)
        whole = b"".join(buffers)
        os.pwrite(fd, whole[: len(whole) // 2], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_chunk_the_disk_refuses_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    disk = FullDisk(monkeypatch)
    writer = SegmentWriter(
        tmp_path,
        recording=1,
        command="sh",
        size=(24, 80),
        clock=clock,
        nanoseconds=lambda: clock.now().boottime,
    )
    writer.append(Kind.OUTPUT, b"before")
    disk.full = True
    with pytest.raises(OSError, match="No space left"):
        writer.append(Kind.OUTPUT, b"lost")
    disk.full = False
    writer.append(Kind.OUTPUT, b"after")
    figures = writer.close()
    assert b"".join(Recording(tmp_path).output()) == b"beforeafter"
    assert verify(tmp_path, figures.sha256) == ()


def test_bytes_reach_the_disk_within_a_second_of_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    synced = threading.Event()
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (sync(fd), synced.set()))
    clock = ManualClock()
    writer = SegmentWriter(
        tmp_path,
        recording=1,
        command="sh",
        size=(24, 80),
        clock=clock,
        nanoseconds=lambda: clock.now().boottime,
    )
    writer.start()
    for _ in range(2):
        synced.clear()
        writer.append(Kind.OUTPUT, b"precious")
        assert synced.wait(1.0)
    writer.close()
