"""The format of a recording's segments: a header that names the segment before it, then checked chunks.

A recording is a folder of segments `000000.seg`, `000001.seg`, ... A closed segment is stored compressed as
`000000.seg.z` (zlib over the same bytes); every hash is over the uncompressed bytes. docs/record.md has the
layout byte by byte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum, StrEnum
from pathlib import PurePath

import msgspec

MAGIC = b"RBWREC1\n"
FIRST_PREV = "0" * 64
KEYFRAME_FOLDER = "keyframes"
"""Cached screens, beside the evidence and no part of it: left out of digests and bundles, made again at need."""
LIVE_FILES = ("recorder.lock", "recorder.status", "recorder.err")
"""What a live recorder keeps beside the segments; no evidence either."""


def is_evidence(path: PurePath) -> bool:
    """Whether a path within a record belongs to what digests cover and bundles carry, as far as recordings go."""
    if path.parts[:1] != ("recordings",):
        return True
    return not (KEYFRAME_FOLDER in path.parts or path.name in LIVE_FILES or path.suffix == ".part")


_SIZES = struct.Struct("<II")
_HEAD = struct.Struct("<BIQ")
_CRC = struct.Struct("<I")
CHUNK_OVERHEAD = _HEAD.size + _CRC.size
LARGEST_CHUNK = 1 << 24


class Kind(IntEnum):
    """What a chunk holds."""

    OUTPUT = 1
    """Bytes the shell wrote, exactly."""
    INPUT = 2
    """Bytes the participant typed while the terminal echoed; only where a session records input."""
    RESIZE = 3
    """Rows and columns, two little-endian 16-bit numbers."""
    MARKER = 4
    """A `Marker` in JSON."""
    ECHO = 5
    """One byte: 1 when the terminal began to echo, 0 when it stopped (a password, or a program that draws itself)."""


class MarkerKind(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    ATTACHED = "attached"
    DETACHED = "detached"
    GAP_BEGAN = "gap-began"
    GAP_ENDED = "gap-ended"


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something the recorder knows beside the bytes."""

    what: MarkerKind
    why: str = ""
    bytes_lost: int = 0
    pid: int | None = None
    exit_code: int | None = None


class SegmentHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first record of a segment."""

    recording: int
    segment: int
    prev: str
    """SHA-256 of the uncompressed segment before it; zeros for the first."""
    boot_id: str
    boottime: int
    """Nanoseconds since boot; chunks count from here."""
    at: str
    output_bytes: int
    """Output recorded before this segment."""
    rows: int
    cols: int
    command: str


class Chunk(msgspec.Struct, frozen=True):
    """One thing recorded, with its boot-time moment in nanoseconds."""

    kind: Kind
    boottime: int
    payload: bytes


class SegmentDamaged(ValueError):
    """Bytes are not a segment, or a chunk's check sum is wrong; the message says where."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(SegmentHeader)
_marker_decoder = msgspec.json.Decoder(Marker)


def pack_header(header: SegmentHeader) -> bytes:
    body = _encoder.encode(header)
    return MAGIC + _SIZES.pack(len(body), zlib.crc32(body)) + body


def pack_chunk_head(kind: int, payload: bytes, delta: int) -> bytes:
    """Return what stands before a chunk's payload: kind, length, nanoseconds since the segment's start, CRC-32."""
    head = _HEAD.pack(kind, len(payload), delta)
    return head + _CRC.pack(zlib.crc32(payload, zlib.crc32(head)))


def pack_marker(marker: Marker) -> bytes:
    return _encoder.encode(marker)


def unpack_marker(payload: bytes) -> Marker:
    return _marker_decoder.decode(payload)


def pack_size(rows: int, cols: int) -> bytes:
    return struct.pack("<HH", rows, cols)


def unpack_size(payload: bytes) -> tuple[int, int]:
    """Return rows and columns."""
    rows, cols = struct.unpack("<HH", payload)
    return rows, cols


def read_header(data: bytes) -> tuple[SegmentHeader, int]:
    """Return a segment's header and where its first chunk begins.

    Raises:
        SegmentDamaged: it is cut short, or is not a header.
    """
    start = len(MAGIC) + _SIZES.size
    if len(data) < start or not data.startswith(MAGIC):
        whole = data.startswith(MAGIC[: len(data)])
        raise SegmentDamaged("the header is cut short" if whole else "it does not begin like a segment")
    length, checksum = _SIZES.unpack_from(data, len(MAGIC))
    body = data[start : start + length]
    if len(body) < length:
        raise SegmentDamaged("the header is cut short")
    if zlib.crc32(body) != checksum:
        raise SegmentDamaged("the header's check sum is wrong")
    try:
        return _header_decoder.decode(body), start + length
    except msgspec.DecodeError as error:
        raise SegmentDamaged(f"the header cannot be read: {error}") from error


def iter_chunks(data: bytes, start: int, boottime: int) -> Iterator[tuple[Chunk, int]]:
    """Yield each whole chunk with the offset of its end; stops before the first that is cut short or wrong."""
    view = memoryview(data)
    total = len(data)
    while start + CHUNK_OVERHEAD <= total:
        kind, length, delta = _HEAD.unpack_from(data, start)
        body = start + CHUNK_OVERHEAD
        end = body + length
        if end > total:
            return
        (checksum,) = _CRC.unpack_from(data, start + _HEAD.size)
        head = zlib.crc32(view[start : start + _HEAD.size])
        if zlib.crc32(view[body:end], head) != checksum or not 1 <= kind <= len(Kind):
            return
        yield Chunk(_KINDS[kind], boottime + delta, data[body:end]), end
        start = end


_KINDS = {kind.value: kind for kind in Kind}
