"""Plain bytes between a scorer and its worker: framed JSON headers with named blobs, and arrays carried as bytes.

Only the standard library is imported here (numpy inside the array functions), because the worker's side runs this
same file in a bare interpreter. A frame is::

    "RBW1" | nonce (16 bytes) | header length (u32) | blobs length (u64) | header (JSON) | blobs, end to end

The header is ``{"kind": ..., "body": {...}, "blobs": [[name, size], ...]}``. Nothing is unpickled, ever.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MAGIC = b"RBW1"
_HEAD = struct.Struct("!4s16sIQ")
LARGEST_HEADER = 8 * 2**20
NONCE_BYTES = 16


class ProtocolBroken(Exception):
    """What arrived is not a frame of ours: foreign bytes, a wrong nonce, a size over the limit, no JSON."""


class ChannelClosed(Exception):
    """The other side closed the channel before a whole frame had arrived."""


class DeadlinePassed(Exception):
    """No whole frame before the deadline."""


@dataclass(frozen=True)
class Message:
    """One decoded frame."""

    kind: str
    body: dict[str, Any]
    blobs: dict[str, bytes]


class Channel:
    """One end of the socket pair that a scorer and its worker share."""

    def __init__(self, end: socket.socket, nonce: bytes, largest: int, peer: int | None = None) -> None:
        """`peer` is the other side's process (a pidfd): its death closes the channel, whoever else holds the end."""
        self._socket = end
        self._peer = peer
        self._nonce = nonce
        self._largest = largest
        end.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def hang_up(self) -> None:
        """Send nothing more; the other side sees the end, and can still be heard."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Message, deadline: float | None = None) -> None:
        """Send one frame; `deadline` is a `time.monotonic()` moment.

        Raises:
            ChannelClosed, DeadlinePassed.
        """
        header = json.dumps(
            {
                "kind": message.kind,
                "body": message.body,
                "blobs": [[n, len(b)] for n, b in message.blobs.items()],
            }
        ).encode()
        total = sum(len(b) for b in message.blobs.values())
        self._send_all(_HEAD.pack(_MAGIC, self._nonce, len(header), total) + header, deadline)
        for blob in message.blobs.values():
            self._send_all(blob, deadline)

    def receive(self, deadline: float | None = None) -> Message:
        """Return the next frame, refusing anything that is not one of this channel.

        Raises:
            ChannelClosed, DeadlinePassed, ProtocolBroken.
        """
        magic, nonce, header_size, blobs_size = _HEAD.unpack(self._receive_exactly(_HEAD.size, deadline))
        if magic != _MAGIC or nonce != self._nonce:
            raise ProtocolBroken("bytes that are not a message of this worker were written to its channel")
        if header_size > LARGEST_HEADER or blobs_size > self._largest:
            raise ProtocolBroken(
                f"a message of {header_size} + {blobs_size} bytes; allowed are {LARGEST_HEADER} + {self._largest}"
            )
        kind, body, sizes = _read_header(bytes(self._receive_exactly(header_size, deadline)), blobs_size)
        content = self._receive_exactly(blobs_size, deadline)
        blobs, start = {}, 0
        for name, size in sizes:
            blobs[name] = bytes(content[start : start + size])
            start += size
        return Message(kind, body, blobs)

    def send_line(self, settings: Mapping[str, Any]) -> None:
        """Send the one line of JSON that comes before any frame and tells the worker its nonce."""
        self._send_all(json.dumps(settings).encode() + b"\n", None)

    def has_unread(self) -> bool:
        """Whether bytes lie in the channel that nobody asked for."""
        return self._wait(select.POLLIN, 0.0)

    def _send_all(self, content: bytes, deadline: float | None) -> None:
        view = memoryview(content)
        while view:
            self._wait_or_raise(select.POLLOUT, deadline)
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error

    def _receive_exactly(self, size: int, deadline: float | None) -> bytearray:
        content = bytearray(size)
        view, have = memoryview(content), 0
        while have < size:
            self._wait_or_raise(select.POLLIN, deadline)
            try:
                got = self._socket.recv_into(view[have:])
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not got:
                raise ChannelClosed(f"closed after {have} of {size} bytes")
            have += got
        return content

    def _wait_or_raise(self, event: int, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if (left is not None and left <= 0) or not self._wait(event, left):
            raise DeadlinePassed

    def _wait(self, event: int, seconds: float | None) -> bool:
        """Wait for the socket; raise ChannelClosed when the peer is dead and has left nothing to read."""
        poll = select.poll()
        poll.register(self._socket, event)
        if self._peer is not None and seconds != 0.0:
            poll.register(self._peer, select.POLLIN)
        ready = dict(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
        if self._socket.fileno() not in ready and ready:
            raise ChannelClosed("the worker's process is gone")
        return bool(ready)


def _read_header(raw: bytes, blobs_size: int) -> tuple[str, dict[str, Any], list[tuple[str, int]]]:
    """Decode a header and check that its blob sizes are whole, named once and add up."""
    try:
        header = json.loads(raw, parse_constant=_no_constant)
        json.dumps(
            header, ensure_ascii=False
        ).encode()  # refuses lone surrogates: nobody could write them down
        kind, body, blobs = header["kind"], header["body"], header["blobs"]
        sizes = [(name, size) for name, size in blobs]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProtocolBroken(f"a message header that does not decode: {error}") from None
    whole = all(type(name) is str and type(size) is int and size >= 0 for name, size in sizes)
    if type(kind) is not str or type(body) is not dict or not whole:
        raise ProtocolBroken("a message header with fields of the wrong kind")
    if len({name for name, _ in sizes}) != len(sizes) or sum(size for _, size in sizes) != blobs_size:
        raise ProtocolBroken("a message whose blobs do not add up")
    return kind, body, sizes


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


class ArrayRefused(Exception):
    """Bytes that claim to be an array are not the array that was asked for."""


_FORMATS = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "float16": "<f2", "float32": "<f4", "float64": "<f8",
}  # fmt: skip


def pack_array(array: Any) -> tuple[dict[str, Any], bytes]:
    """Return ({"dtype", "shape"}, bytes) of a numpy array or a torch tensor (any device; bfloat16 goes as float32)."""
    import numpy as np

    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        array = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    array = np.ascontiguousarray(array)
    if array.dtype.name not in _FORMATS:
        raise ArrayRefused(f"arrays of {array.dtype} are not carried; allowed are {', '.join(_FORMATS)}")
    native = array.astype(_FORMATS[array.dtype.name], copy=False)
    return {"dtype": array.dtype.name, "shape": list(array.shape)}, native.tobytes()


def unpack_array(
    description: Mapping[str, Any],
    content: bytes,
    *,
    dtype: str,
    shape: tuple[int | None, ...],
    name: str = "array",
    finite: bool = True,
) -> np.ndarray[Any, Any]:
    """Return the array, which must have exactly this dtype, this shape (None = any length) and be finite.

    Raises:
        ArrayRefused: naming `name`, what was expected and what was found.
    """
    import numpy as np

    found_dtype, found_shape = description.get("dtype"), description.get("shape")
    if found_dtype != dtype or dtype not in _FORMATS:
        raise ArrayRefused(f"{name}: expected {dtype}, found {str(found_dtype)[:40]}")
    if type(found_shape) is not list or not all(type(n) is int and 0 <= n < 2**40 for n in found_shape):
        raise ArrayRefused(f"{name}: its shape is not a list of whole numbers")
    fits = len(found_shape) == len(shape) and all(
        w in (None, n) for w, n in zip(shape, found_shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ArrayRefused(f"{name}: expected shape [{wanted}], found {found_shape}")
    layout = np.dtype(_FORMATS[dtype])
    if len(content) != math.prod(found_shape) * layout.itemsize:
        raise ArrayRefused(f"{name}: {len(content)} bytes do not fill {found_shape} of {dtype}")
    array = np.frombuffer(content, dtype=layout).reshape(found_shape)
    if finite and layout.kind == "f" and not np.isfinite(array).all():
        raise ArrayRefused(f"{name}: holds NaN or infinity")
    return array
