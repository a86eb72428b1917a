"""Reads a recording, finished or still being made, whole or torn."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from sessions.recording.format import (
    Chunk,
    Kind,
    SegmentDamaged,
    SegmentHeader,
    is_evidence,
    iter_chunks,
    read_header,
)
from sessions.recording.writer import Figures, segment_name

_HEADER_BYTES = 64 << 10
_MOST_SEGMENT = 1 << 28


class RecordingUnreadable(Exception):
    """There is no recording here, or its beginning is gone."""


class Segment(msgspec.Struct, frozen=True):
    """One segment, as far as it can be read."""

    header: SegmentHeader
    data: bytes
    """Uncompressed, as it was written."""
    first_chunk: int

    def chunks(self) -> Iterator[Chunk]:
        for chunk, _ in iter_chunks(self.data, self.first_chunk, self.header.boottime):
            yield chunk

    @property
    def sound_bytes(self) -> int:
        """Length up to the last whole chunk."""
        ends = deque(iter_chunks(self.data, self.first_chunk, self.header.boottime), maxlen=1)
        return ends[0][1] if ends else self.first_chunk


class Recording:
    """The segments of one recording, opened by their headers alone.

    Raises:
        RecordingUnreadable: no segment has a readable header.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.headers: list[SegmentHeader] = []
        self.refresh()
        if not self.headers:
            raise RecordingUnreadable(f"{folder} holds no readable recording")

    def refresh(self) -> None:
        """Look for segments that came since."""
        numbers = segment_numbers(self.folder)
        for number in numbers[len(self.headers) :]:
            try:
                header, _ = read_header(_head_of(self.folder, number))
            except (SegmentDamaged, OSError, zlib.error):
                break
            if header.segment != len(self.headers):
                break
            self.headers.append(header)

    @property
    def began(self) -> int:
        """Boot-time nanoseconds of the first segment's start."""
        return self.headers[0].boottime

    def ended(self) -> int:
        """Return the boot-time moment of the last whole chunk."""
        last = self.headers[-1].boottime
        for chunk in self.segment(len(self.headers) - 1).chunks():
            last = chunk.boottime
        return last

    def segment(self, number: int) -> Segment:
        """Return one segment's content.

        Raises:
            SegmentDamaged: it cannot be read at all.
        """
        return load_segment(self.folder, number)

    def segment_at(self, boottime: int) -> int:
        """Return the number of the segment in which a moment lies; the first for moments before it."""
        number = 0
        for header in self.headers:
            if header.boottime > boottime:
                break
            number = header.segment
        return number

    def chunks(self, first_segment: int = 0) -> Iterator[Chunk]:
        """Yield every whole chunk; a segment that cannot be read is passed over."""
        for number in range(first_segment, len(self.headers)):
            try:
                yield from self.segment(number).chunks()
            except SegmentDamaged:
                continue

    def output(self) -> Iterator[bytes]:
        """Yield what the shell wrote, exactly."""
        return (chunk.payload for chunk in self.chunks() if chunk.kind is Kind.OUTPUT)


def segment_numbers(folder: Path) -> list[int]:
    """Return the numbers of the segments present, in order."""
    if not folder.is_dir():
        return []
    names = (path.name.split(".") for path in folder.iterdir())
    found = {int(n[0]) for n in names if n[1:] in (["seg"], ["seg", "z"]) and n[0].isdecimal()}
    return sorted(found)


def load_segment(folder: Path, number: int) -> Segment:
    """Return a segment's uncompressed content.

    Raises:
        SegmentDamaged: there is none, or its header or its compression cannot be read.
    """
    data = _read(folder, number)
    header, first_chunk = read_header(data)
    return Segment(header, data, first_chunk)


def _read(folder: Path, number: int) -> bytes:
    raw = folder / segment_name(number)
    packed = raw.with_name(raw.name + ".z")
    # A live recorder replaces the one by the other: the second look at the raw one is for that moment.
    for path in (raw, packed, raw):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SegmentDamaged(f"{path.name} cannot be read: {error.strerror}") from error
        return data if path is raw else inflate(data, path.name)
    raise SegmentDamaged(f"segment {number} is missing")


def inflate(data: bytes, name: str) -> bytes:
    """Return what was compressed.

    Raises:
        SegmentDamaged: it was cut, changed, or grows without bounds.
    """
    machine = zlib.decompressobj()
    try:
        raw = machine.decompress(data, _MOST_SEGMENT)
    except zlib.error as error:
        raise SegmentDamaged(f"{name} does not decompress: {error}") from error
    if not machine.eof or machine.unused_data:
        raise SegmentDamaged(f"{name} does not decompress to its end")
    return raw


def _head_of(folder: Path, number: int) -> bytes:
    raw = folder / segment_name(number)
    try:
        with raw.open("rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError:
        with raw.with_name(raw.name + ".z").open("rb") as file:
            return zlib.decompressobj().decompress(file.read(_HEADER_BYTES), _HEADER_BYTES)


def figures_of(folder: Path) -> Figures:
    """Return what a recording amounts to as it lies there: for one whose recorder died.

    Raises:
        RecordingUnreadable: nothing of it can be read.
    """
    recording = Recording(folder)
    last = recording.segment(len(recording.headers) - 1)
    count = sum(len(chunk.payload) for chunk in last.chunks() if chunk.kind is Kind.OUTPUT)
    digest = sha256(last.data[: last.sound_bytes]).hexdigest()
    return Figures(last.header.output_bytes + count, digest)


def evidence_of(folder: Path) -> list[Path]:
    """Return the files that are the recording: what digests cover and bundles carry."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if is_evidence("recordings" / path.relative_to(folder)))
