"""Checks a recording against itself and against the hash the log holds: what was torn, what was changed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from sessions.recording.format import (
    CHUNK_OVERHEAD,
    FIRST_PREV,
    Chunk,
    Kind,
    SegmentDamaged,
    SegmentHeader,
    iter_chunks,
    unpack_marker,
)
from sessions.recording.reader import Segment, load_segment, segment_numbers


class Findings(msgspec.Struct, frozen=True):
    """What a check found."""

    problems: tuple[str, ...]
    """Each a sentence; something here was changed, removed or added after it was recorded."""
    torn: str | None
    """The end that was cut off by a crash or a power cut, in words; no sign of tampering."""
    segments: int
    output_bytes: int
    sha256: str | None
    """Of the last segment, up to its last whole chunk."""
    closed: bool
    """Whether the recorder ended the recording itself."""

    def sentences(self) -> tuple[str, ...]:
        return (*self.problems, self.torn) if self.torn else self.problems


def verify(folder: Path, sealed_sha256: str | None = None) -> tuple[str, ...]:
    """Return what is wrong with a recording, in words; a torn tail comes last. Empty means nothing is."""
    return examine(folder, sealed_sha256).sentences()


def examine(folder: Path, sealed_sha256: str | None = None) -> Findings:
    """Check a recording; `sealed_sha256` is the hash in `shell_closed`, where the log has one."""
    check = _Check()
    numbers = segment_numbers(folder)
    for expected, number in enumerate(numbers):
        if number != expected:
            check.problems.append(f"segment {expected} of {folder.name} is missing")
            break
        if not check.segment(folder, number, last=number == numbers[-1]):
            break
    if not numbers:
        check.problems.append(f"{folder} holds no recording")
    if sealed_sha256 is not None and check.head != sealed_sha256 and not check.problems:
        check.problems.append(
            f"recording {folder.name} ends with {(check.head or 'nothing')[:12]}, where the log holds "
            f"{sealed_sha256[:12]}: its end was changed or removed after it was closed"
        )
    return Findings(
        tuple(check.problems), check.torn, len(numbers), check.output_bytes, check.head, check.closed
    )


class _Check:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.torn: str | None = None
        self.output_bytes = 0
        self.head: str | None = None
        self.closed = False
        self._before: SegmentHeader | None = None
        self._at = 0

    def segment(self, folder: Path, number: int, *, last: bool) -> bool:
        """Check one segment; False when nothing after it can be judged."""
        name = f"segment {number} of recording {folder.name}"
        try:
            segment = load_segment(folder, number)
        except SegmentDamaged as error:
            if last and "cut short" in str(error):
                self.torn = f"{name} was cut off before it held anything: {error}"
            else:
                self.problems.append(f"{name} is damaged: {error}")
            return False
        self._header(segment.header, number, name)
        end = self._chunks(segment, name)
        if end < len(segment.data):
            self._rest(segment, end, name, last=last)
        self.head = sha256(segment.data if not last else segment.data[:end]).hexdigest()
        self._before = segment.header
        return True

    def _header(self, header: SegmentHeader, number: int, name: str) -> None:
        if header.segment != number:
            self.problems.append(f"{name} says it is segment {header.segment}")
        expected = self.head or FIRST_PREV
        if header.prev != expected:
            self.problems.append(
                f"the chain breaks at {name}: it names {header.prev[:12]} as what came before, which is "
                f"{expected[:12]}: segment {number - 1} was changed, removed or exchanged"
            )
        if header.output_bytes != self.output_bytes:
            self.problems.append(
                f"{name} says {header.output_bytes} bytes of output came before it, where {self.output_bytes} did"
            )
        before = self._before
        if before is not None and header.boot_id != before.boot_id:
            self.problems.append(f"{name} is from another boot than the segment before it")
        elif header.boottime < self._at:
            self.problems.append(f"{name} begins before what comes before it")
        self._at = header.boottime

    def _chunks(self, segment: Segment, name: str) -> int:
        end = segment.first_chunk
        for chunk, chunk_end in iter_chunks(segment.data, end, segment.header.boottime):
            end = chunk_end
            if chunk.boottime < self._at:
                self.problems.append(f"{name} goes back in time at byte {end}")
            self._at = chunk.boottime
            self._count(chunk, name)
        return end

    def _count(self, chunk: Chunk, name: str) -> None:
        if chunk.kind is Kind.OUTPUT:
            self.output_bytes += len(chunk.payload)
        elif chunk.kind is Kind.MARKER:
            try:
                self.closed = unpack_marker(chunk.payload).what == "closed"
            except msgspec.DecodeError as error:
                self.problems.append(f"{name} holds a marker that cannot be read: {error}")

    def _rest(self, segment: Segment, end: int, name: str, *, last: bool) -> None:
        """Judge bytes that are no whole chunk: a torn end, or a change with whole chunks behind it."""
        seconds = (self._at - segment.header.boottime) / 1e9
        rest = len(segment.data) - end
        if last and not self.closed and not _chunks_follow(segment, end):
            self.torn = (
                f"{name} has a torn tail: its last {rest} bytes are no whole chunk and are not replayed; "
                f"what came before them is sound, up to {seconds:.1f} s into the segment"
            )
        else:
            self.problems.append(f"{name} was changed at byte {end}: {rest} bytes from there do not check")


def _chunks_follow(segment: Segment, end: int) -> bool:
    """Whether a whole chunk stands behind the first wrong one, with no hole between: then this is no torn end.

    A power cut may leave a hole of zeros where a block did not reach the disk but a later one did.
    """
    data = segment.data
    if bytes(_BLOCK) in data[end:]:
        return False
    return any(
        next(iter_chunks(data, start, segment.header.boottime), None) is not None
        for start in range(end + 1, len(data) - CHUNK_OVERHEAD + 1)
        if data[start] in _KINDS
    )


_BLOCK = 512
_KINDS = frozenset(int(kind) for kind in Kind)
