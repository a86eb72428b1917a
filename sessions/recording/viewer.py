"""The recorder's end of one attached terminal."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

from sessions.recording.wire import Frame, Frames, pack_frame

_BEHIND = 1 << 20
LARGEST_OUTPUT = 1 << 20
_LAST_SECONDS = 5.0


class Viewer:
    """A connection with what could not be sent yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.setblocking(False)
        self.pending = bytearray()
        self.open = True
        self._frames = Frames()

    @property
    def behind(self) -> bool:
        """Whether so much waits that the shell must wait too."""
        return len(self.pending) > _BEHIND

    def receive(self) -> Iterator[tuple[Frame, bytes]]:
        """Yield what came.

        Raises:
            EOFError: the terminal is gone.
            FrameBroken: it does not speak the protocol.
        """
        data = self.connection.recv(1 << 16)
        if not data:
            raise EOFError
        yield from self._frames.feed(data)

    def send(self, output: bytes) -> None:
        """Send output, keeping what the socket does not take."""
        for start in range(0, len(output), LARGEST_OUTPUT):
            self.send_frame(pack_frame(Frame.OUTPUT, output[start : start + LARGEST_OUTPUT]))

    def send_frame(self, frame: bytes) -> None:
        try:
            sent = 0 if self.pending else self.connection.send(frame)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.open = False
            return
        self.pending += frame[sent:]

    def flush(self) -> None:
        try:
            while self.pending:
                del self.pending[: self.connection.send(self.pending)]
        except BlockingIOError:
            pass
        except OSError:
            self.open = False
            self.pending.clear()
            raise

    def send_last(self, frame: bytes) -> None:
        """Send what is left and one more frame, giving a terminal that does not read a few seconds."""
        self.connection.settimeout(_LAST_SECONDS)
        with suppress(OSError):
            self.connection.sendall(bytes(self.pending) + frame)

    def close(self) -> None:
        self.open = False
        self.connection.close()
