"""What tests of recordings share: recordings written without a shell, and shells in a terminal."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sessions.record.clock import ManualClock
from sessions.recording.format import Kind, pack_size
from sessions.recording.handle import ShellRequest
from sessions.recording.wire import Frame, Frames, Hello, pack_frame
from sessions.recording.writer import ROTATION, Figures, Rotation, SegmentWriter
from tests.waiting import wait_until


def write_recording(
    folder: Path,
    chunks: list[bytes],
    *,
    rotation: Rotation = ROTATION,
    seconds_apart: float = 0.1,
    size: tuple[int, int] = (24, 80),
    clock: ManualClock | None = None,
    kind: Kind = Kind.OUTPUT,
) -> Figures:
    """Write a whole recording of output without a shell."""
    folder.mkdir(parents=True, exist_ok=True)
    time_of = clock or ManualClock()
    writer = SegmentWriter(
        folder, recording=1, command="sh", size=size, clock=time_of,
        nanoseconds=lambda: time_of.now().boottime, rotation=rotation,
    )  # fmt: skip
    writer.start()
    for chunk in chunks:
        time_of.advance(seconds_apart)
        writer.append(kind, chunk)
    return writer.close()


def shell_request(folder: Path, argv: tuple[str, ...] = ("/bin/sh",), **changes: object) -> ShellRequest:
    """A shell with a plain prompt, in a folder of its own."""
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PS1": "$ ", "HOME": str(folder)}
    request = ShellRequest(folder, argv, environment, folder / "rec.sock")
    return msgspec.structs.replace(request, **changes)


class FakeTerminal:
    """A terminal attached to a recorder, without a screen."""

    def __init__(self, path: Path, rows: int = 24, cols: int = 80) -> None:
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.connect(str(path))
        self.connection.settimeout(0.05)
        self.output = b""
        self.frames: list[tuple[Frame, bytes]] = []
        self._parser = Frames()
        self.connection.sendall(pack_frame(Frame.HELLO, msgspec.json.encode(Hello(rows, cols))))

    def type(self, data: bytes) -> None:
        self.connection.sendall(pack_frame(Frame.INPUT, data))

    def resize(self, rows: int, cols: int) -> None:
        self.connection.sendall(pack_frame(Frame.RESIZE, pack_size(rows, cols)))

    def read(self) -> None:
        try:
            data = self.connection.recv(1 << 16)
        except (TimeoutError, OSError):
            return
        for kind, payload in self._parser.feed(data):
            self.frames.append((kind, payload))
            if kind is Frame.OUTPUT:
                self.output += payload

    def wait_for(self, text: bytes, seconds: float = 15.0) -> None:
        def seen() -> bool:
            self.read()
            return text in self.output

        wait_until(seen, seconds, f"{text!r} on the terminal, which shows {self.output[-500:]!r}")

    def wait_for_frame(self, kind: Frame) -> bytes:
        def seen() -> bool:
            self.read()
            return any(found is kind for found, _ in self.frames)

        wait_until(seen, what=str(kind))
        return next(payload for found, payload in self.frames if found is kind)

    def close(self) -> None:
        self.connection.close()


@contextmanager
def terminal_program(source: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run a Python program in a new terminal; yields its process id and the terminal's other end."""
    import pty

    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", source, *arguments])
    try:
        yield pid, master
    finally:
        os.close(master)
