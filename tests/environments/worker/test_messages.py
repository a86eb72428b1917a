"""Frames arrive whole or are refused; arrays are what was asked for or are refused."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.worker.messages import (
    _HEAD,
    ArrayRefused,
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Message,
    ProtocolBroken,
    pack_array,
    unpack_array,
)

NONCE = b"0123456789abcdef"


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, NONCE, largest=1_000_000)
    yield channel, theirs
    channel.close()
    theirs.close()


def frame(header: bytes, blobs: bytes = b"", nonce: bytes = NONCE, magic: bytes = b"RBW1") -> bytes:
    return _HEAD.pack(magic, nonce, len(header), len(blobs)) + header + blobs


def header(**changes: Any) -> bytes:
    return json.dumps({"kind": "answer", "body": {}, "blobs": [], **changes}).encode()


def test_a_message_arrives_as_it_was_sent(ends: tuple[Channel, socket.socket]) -> None:
    channel, theirs = ends
    sent = Message(
        "answer", {"loss": 1.5, "names": ["a", None]}, {"weights": b"\0\1\2" * 100_000, "empty": b""}
    )
    other = Channel(theirs, NONCE, largest=1_000_000)
    sender = threading.Thread(target=other.send, args=(sent,))
    sender.start()
    assert channel.receive(time.monotonic() + 10) == sent
    sender.join()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"x" * 64, "not a message"),
        (frame(header(), nonce=b"f" * 16), "not a message"),
        (_HEAD.pack(b"RBW1", NONCE, 2**31, 0), "allowed are"),
        (_HEAD.pack(b"RBW1", NONCE, 10, 2**40), "allowed are"),
        (frame(b"{"), "does not decode"),
        (frame(b"[]"), "does not decode"),
        (frame(b"\xff\xfe"), "does not decode"),
        (frame(b'{"kind": "answer", "body": {"x": NaN}, "blobs": []}'), "NaN is not JSON"),
        (frame(b'{"kind": "answer", "body": {"x": -Infinity}, "blobs": []}'), "Infinity is not JSON"),
        (
            frame(b'{"kind": "answer", "body": ' + b"[" * 200_000 + b"]" * 200_000 + b', "blobs": []}'),
            "does not decode",
        ),
        (frame(header(kind=3)), "wrong kind"),
        (frame(header(body=[])), "wrong kind"),
        (frame(header(blobs=[["a", -1]])), "wrong kind"),
        (frame(header(blobs=[["a", True]]), b"x"), "wrong kind"),
        (frame(header(blobs=[["a"]])), "does not decode"),
        (frame(header(blobs=[["a", 5]]), b"x"), "do not add up"),
        (frame(header(blobs=[["a", 1], ["a", 1]]), b"xx"), "do not add up"),
    ],
)
def test_anything_else_is_refused(ends: tuple[Channel, socket.socket], raw: bytes, says: str) -> None:
    channel, theirs = ends
    threading.Thread(target=theirs.sendall, args=(raw,), daemon=True).start()
    with pytest.raises(ProtocolBroken, match=says):
        channel.receive(time.monotonic() + 10)


@given(raw=st.binary(min_size=_HEAD.size, max_size=300))
def test_random_bytes_never_make_a_message(raw: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(raw)
        theirs.close()
        with pytest.raises((ProtocolBroken, ChannelClosed)):
            Channel(ours, NONCE, largest=1000).receive(time.monotonic() + 10)


def test_half_a_message_is_a_closed_channel(ends: tuple[Channel, socket.socket]) -> None:
    channel, theirs = ends
    theirs.sendall(frame(header(blobs=[["a", 5]]), b"12345")[:-1])
    theirs.close()
    with pytest.raises(ChannelClosed):
        channel.receive(time.monotonic() + 10)


def test_silence_ends_at_the_deadline(ends: tuple[Channel, socket.socket]) -> None:
    with pytest.raises(DeadlinePassed):
        ends[0].receive(time.monotonic() + 0.01)


def test_a_reader_that_never_reads_does_not_hold_up_the_sender(ends: tuple[Channel, socket.socket]) -> None:
    with pytest.raises(DeadlinePassed):
        ends[0].send(Message("request", {}, {"a": b"x" * 50_000_000}), time.monotonic() + 0.05)


def test_unread_bytes_are_noticed(ends: tuple[Channel, socket.socket]) -> None:
    channel, theirs = ends
    assert not channel.has_unread()
    theirs.sendall(b"x")
    assert channel.has_unread()


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
)
def test_an_array_survives_the_way(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    description, content = pack_array(array)
    assert json.loads(json.dumps(description)) == {"dtype": dtype, "shape": [2, 3]}
    back = unpack_array(description, content, dtype=dtype, shape=(2, None))
    assert back.dtype == np.dtype(dtype)
    assert (back == array).all()


def test_big_endian_and_strided_arrays_arrive_right() -> None:
    array = np.arange(12, dtype=">f4").reshape(3, 4)[:, ::2]
    back = unpack_array(*pack_array(array), dtype="float32", shape=(3, 2))
    assert (back == array).all()


def test_a_tensor_is_packed_like_an_array() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4.0, requires_grad=True)
    assert unpack_array(*pack_array(tensor), dtype="float32", shape=(4,)).tolist() == [0, 1, 2, 3]
    assert pack_array(tensor.to(torch.bfloat16))[0]["dtype"] == "float32"


GOOD = struct.pack("<2f", 1.0, 2.0)


@pytest.mark.parametrize(
    ("description", "content", "says"),
    [
        ({}, GOOD, "loss: expected float32, found None"),
        ({"dtype": "object", "shape": [2]}, GOOD, "expected float32, found object"),
        ({"dtype": "float64", "shape": [2]}, GOOD * 2, "expected float32, found float64"),
        ({"dtype": "float32", "shape": "2"}, GOOD, "not a list of whole numbers"),
        ({"dtype": "float32", "shape": [2.0]}, GOOD, "not a list of whole numbers"),
        ({"dtype": "float32", "shape": [True]}, GOOD, "not a list of whole numbers"),
        ({"dtype": "float32", "shape": [-2]}, GOOD, "not a list of whole numbers"),
        ({"dtype": "float32", "shape": [1, 2]}, GOOD, r"expected shape \[2\], found \[1, 2\]"),
        ({"dtype": "float32", "shape": [3]}, GOOD, r"expected shape \[2\], found \[3\]"),
        ({"dtype": "float32", "shape": [2]}, GOOD[:-1], "7 bytes do not fill"),
        ({"dtype": "float32", "shape": [2]}, struct.pack("<2f", 1.0, float("nan")), "holds NaN or infinity"),
        ({"dtype": "float32", "shape": [2]}, struct.pack("<2f", 1.0, float("-inf")), "holds NaN or infinity"),
    ],
)
def test_an_array_that_is_not_what_was_asked_for_is_refused(
    description: dict[str, Any], content: bytes, says: str
) -> None:
    with pytest.raises(ArrayRefused, match=says):
        unpack_array(description, content, dtype="float32", shape=(2,), name="loss")


def test_an_object_array_is_never_packed() -> None:
    with pytest.raises(ArrayRefused, match="not carried"):
        pack_array(np.array([object()]))
