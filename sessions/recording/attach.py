"""The participant's side of a recorded shell: this terminal becomes the shell's until it ends or is left."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from sessions.recording.format import pack_size
from sessions.recording.redraw import LEAVE_ALTERNATE, RESTORE
from sessions.recording.wire import Exit, Frame, Frames, Hello, pack_frame

LEAVE = b"\x1c"
"""Ctrl-\\: followed by `d` it leaves the shell running, twice it is one Ctrl-\\ for the program inside."""
ENTER_ALTERNATE = b"\x1b[?1049h"
END_OF_INPUT = b"\x04"
LEAVE_HINT = "Ctrl-\\ then d leaves this shell running; exit ends it"
_PREFIX_SECONDS = 1.0


class NothingToAttach(ConnectionError):
    """No recorder answers at the socket."""


class _Left(Exception):
    """The session with the shell is over; carries `run`'s result and a line for the participant."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code = code


def run(socket_path: Path | str, *, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> int:
    """Attach this terminal to a recorder and return the shell's exit code, or 0 when it was left running.

    The terminal's settings are as before when this returns or raises, also after HUP and TERM.

    Raises:
        NothingToAttach: no recorder answers.
    """
    source, target = stdin or sys.stdin.buffer, stdout or sys.stdout.buffer
    target.flush()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(socket_path))
    except OSError as error:
        connection.close()
        raise NothingToAttach(f"no recorded shell answers at {socket_path}: {error.strerror}") from error
    session = _Attachment(connection, source.fileno(), target.fileno())
    with connection, _raw(source.fileno()), _signals() as wake:
        try:
            left = session.serve(wake)
        finally:
            session.restore()
    if str(left):
        sys.stderr.write(f"[{left}]\n")
    return left.code


class _Attachment:
    def __init__(self, connection: socket.socket, source: int, target: int) -> None:
        self._connection = connection
        self._source, self._target = source, target
        self._frames = Frames()
        self._prefix = False
        self._tail = b""
        self._alternate = False

    def serve(self, wake: int) -> _Left:
        self._connection.sendall(pack_frame(Frame.HELLO, msgspec.json.encode(Hello(*self._size()))))
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ, self._shell_wrote)
                selector.register(wake, selectors.EVENT_READ, lambda: self._signalled(wake))
                with suppress(PermissionError):  # a plain file as input cannot be waited for, nor need it be
                    selector.register(self._source, selectors.EVENT_READ, lambda: self._typed(selector))
                while True:
                    ready = selector.select(_PREFIX_SECONDS if self._prefix else None)
                    if not ready and self._prefix:
                        self._prefix = False
                        self._send(LEAVE)
                    for key, _ in ready:
                        key.data()
        except _Left as left:
            return left
        except OSError:
            return _Left(1, "the recorder went away; the shell was hung up")

    def _shell_wrote(self) -> None:
        data = self._connection.recv(1 << 16)
        if not data:
            raise _Left(1, "the recorder went away; the shell was hung up")
        for kind, payload in self._frames.feed(data):
            if kind is Frame.OUTPUT:
                self._notice_alternate(payload)
                _write_all(self._target, payload)
            elif kind is Frame.EXIT:
                raise _Left(msgspec.json.decode(payload, type=Exit).exit_code, "")
            elif kind is Frame.TAKEN:
                raise _Left(0, "this shell is now attached to another terminal")

    def _notice_alternate(self, output: bytes) -> None:
        seen = self._tail + output
        entered, left = seen.rfind(ENTER_ALTERNATE), seen.rfind(LEAVE_ALTERNATE)
        if entered != left:
            self._alternate = entered > left
        self._tail = seen[-len(ENTER_ALTERNATE) + 1 :]

    def restore(self) -> None:
        """Undo what the program inside may have switched on in this terminal."""
        if os.isatty(self._target):
            with suppress(OSError):
                _write_all(self._target, (LEAVE_ALTERNATE if self._alternate else b"") + RESTORE)

    def _typed(self, selector: selectors.BaseSelector) -> None:
        try:
            data = os.read(self._source, 1 << 14)
        except OSError:
            data = b""
        if not data:
            if os.isatty(self._source):
                raise _Left(0, "this terminal is gone; the shell goes on, and is still recorded")
            selector.unregister(self._source)
            self._send(END_OF_INPUT)
            return
        out = bytearray()
        for byte in (data[i : i + 1] for i in range(len(data))) if self._prefix or LEAVE in data else (data,):
            if self._prefix:
                self._prefix = False
                if byte in (b"d", b"D"):
                    self._send(bytes(out))
                    self._connection.sendall(pack_frame(Frame.DETACH))
                    raise _Left(0, "left running, and still recorded")
                out += LEAVE if byte == LEAVE else LEAVE + byte
            elif byte == LEAVE:
                self._prefix = True
            else:
                out += byte
        self._send(bytes(out))

    def _send(self, typed: bytes) -> None:
        if typed:
            self._connection.sendall(pack_frame(Frame.INPUT, typed))

    def _signalled(self, wake: int) -> None:
        numbers = os.read(wake, 64)
        for number in (signal.SIGHUP, signal.SIGTERM):
            if number in numbers:
                raise _Left(128 + number, "")
        if signal.SIGWINCH in numbers:
            self._connection.sendall(pack_frame(Frame.RESIZE, pack_size(*self._size())))

    def _size(self) -> tuple[int, int]:
        for fd in (self._target, self._source):
            with suppress(OSError):
                cols, rows = os.get_terminal_size(fd)
                if rows and cols:
                    return rows, cols
        return 24, 80


@contextmanager
def _raw(source: int) -> Iterator[None]:
    """Give every key to the shell, and the terminal back as it was."""
    before = termios.tcgetattr(source) if os.isatty(source) else None
    if before is not None:
        tty.setraw(source, termios.TCSADRAIN)
    try:
        yield
    finally:
        if before is not None:
            with suppress(termios.error):
                termios.tcsetattr(source, termios.TCSADRAIN, before)


@contextmanager
def _signals() -> Iterator[int]:
    """Turn HUP, TERM and changes of size into bytes to read; give all handlers back."""
    told, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    numbers = (signal.SIGHUP, signal.SIGTERM, signal.SIGWINCH)
    wakeup = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield told
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(told)
        os.close(tell)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            selector = selectors.DefaultSelector()
            with selector:
                selector.register(fd, selectors.EVENT_WRITE)
                selector.select(1.0)
