"""What a recorder and the terminal attached to it say to each other: frames of kind, length and bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

import msgspec

_HEAD = struct.Struct("<BI")
LONGEST_FRAME = 1 << 22


class Frame(IntEnum):
    """Kinds; the first four go to the recorder, the others to the terminal."""

    HELLO = 1
    """`Hello` in JSON; the first frame of a connection."""
    INPUT = 2
    RESIZE = 3
    """Rows and columns, as in a recording."""
    DETACH = 4
    OUTPUT = 16
    """What the shell wrote, or what draws its screen anew."""
    EXIT = 17
    """`Exit` in JSON; the shell ended."""
    TAKEN = 18
    """Another terminal has attached."""


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: int
    cols: int


class Exit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    exit_code: int


class FrameBroken(ValueError):
    """The other side does not speak this protocol."""


def pack_frame(kind: Frame, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(payload)) + payload


class Frames:
    """Puts frames together from what arrives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Frame, bytes]]:
        """Yield each frame that is complete.

        Raises:
            FrameBroken: an unknown kind or an absurd length.
        """
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            number, length = _HEAD.unpack_from(self._buffer)
            try:
                kind = Frame(number)
            except ValueError as error:
                raise FrameBroken(f"unknown kind of frame {number}") from error
            if length > LONGEST_FRAME:
                raise FrameBroken(f"a frame of {length} bytes")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            yield kind, payload
