"""The process that owns a recorded shell's terminal: records what it shows, serves whoever attaches.

    python -m sessions.recording.recorder --record FOLDER --number N --socket PATH --cwd WORK-TREE

It outlives the host that started it and every terminal attached to it. When it dies, the shell is hung up.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sessions.record.clock import SystemClock
from sessions.record.events import Light
from sessions.recording.flood import FloodGate
from sessions.recording.format import Kind, Marker, MarkerKind, unpack_size
from sessions.recording.keyframes import start_building
from sessions.recording.order import Order, order_of
from sessions.recording.player import Player
from sessions.recording.reader import RecordingUnreadable
from sessions.recording.redraw import RESTORE, redraw
from sessions.recording.shell import Shell, ShellNotStarted
from sessions.recording.standing import RecorderBusy, RecorderStatus, Stage, Standing
from sessions.recording.tape import Tape
from sessions.recording.viewer import Viewer
from sessions.recording.wire import Exit, Frame, FrameBroken, Hello, pack_frame
from sessions.recording.writer import Figures, SegmentWriter

BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
TICK = 1.0
READ = 1 << 16
READS_A_TURN = 16
FRESH_BYTES = 1 << 16
"""What a shell may say before the first terminal attaches and still be passed on as it is."""
TYPED_BYTES = 1 << 20
KEYFRAMES_EVERY = 4
"""Closed segments before a process is started to make their keyframes."""


def boottime() -> int:
    return time.clock_gettime_ns(BOOTTIME)


class Recorder:
    """One shell, its tape, and at most one terminal attached."""

    def __init__(self, order: Order) -> None:
        self._order = order
        clock = SystemClock()
        order.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._standing = Standing(order.folder)
        command = order.command
        now = clock.now()
        self._status = RecorderStatus(
            order.number, os.getpid(), now.boot_id, now.boottime, str(order.socket), command[:1024]
        )
        self._listener = listen(order.socket, order.participant)
        writer = SegmentWriter(
            order.folder, recording=order.number, command=command[:8192], size=order.size, clock=clock,
            nanoseconds=boottime, rotation=order.rotation,
        )  # fmt: skip
        self._writer = writer
        self._tape = Tape(writer, FloodGate(order.limits, boottime()), boottime)
        self._viewer: Viewer | None = None
        self._fresh: bytes | None = b""
        self._shell_gone = False
        self._echo = True
        self._typed = bytearray()
        self._ending = False
        self._indexed = 0
        self._indexer: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    def run(self) -> int:
        """Record until the shell ends; returns its exit code.

        Raises:
            ShellNotStarted: there was nothing to record.
        """
        order = self._order
        try:
            self._shell = Shell(
                order.argv, cwd=order.cwd, environment=order.environment, size=order.size,
                terminal_owner=order.participant,
            )  # fmt: skip
        except ShellNotStarted as error:
            self._tape.mark(Marker(MarkerKind.CLOSED, str(error), exit_code=127))
            self._finish(127, Stage.FAILED, str(error))
            raise
        self._writer.start()
        self._tape.mark(Marker(MarkerKind.OPENED, self._status.command, pid=self._shell.pid))
        self._status = replace(self._status, stage=Stage.OPEN, shell_pid=self._shell.pid)
        self._listen_to_signals()
        self._say()
        self._loop()
        self._drain()
        code = self._shell.wait()
        # Before the descriptor goes: hanging up is the kernel's business, the record is ours.
        os.close(self._shell.master)
        self._tape.mark(Marker(MarkerKind.CLOSED, exit_code=code))
        if self._viewer is not None:
            self._viewer.send_last(pack_frame(Frame.EXIT, msgspec.json.encode(Exit(code))))
        self._finish(code, Stage.CLOSED, "")
        return code

    def _listen_to_signals(self) -> None:
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        register = self._selector.register
        register(self._wake, selectors.EVENT_READ, self._signalled)
        register(self._listener, selectors.EVENT_READ, self._accept)
        register(self._shell.master, selectors.EVENT_READ, self._shell_wrote)
        register(self._shell.pidfd, selectors.EVENT_READ, self._shell_ended)

    def _loop(self) -> None:
        tick_at = time.monotonic() + TICK
        while not self._ending:
            for key, mask in self._selector.select(max(0.0, tick_at - time.monotonic())):
                act: Callable[[int], None] = key.data
                act(mask)
            if time.monotonic() >= tick_at:
                self._tick()
                tick_at = time.monotonic() + TICK

    # The shell

    def _shell_wrote(self, _mask: int) -> None:
        if self._viewer is not None and self._viewer.behind:
            # As in any terminal, a program waits for a screen that cannot keep up.
            self._watch_shell()
            return
        self._output(self._take())

    def _take(self) -> bytes:
        """Return what the shell has written, up to a limit: the kernel hands it out in small pieces."""
        pieces = []
        try:
            for _ in range(READS_A_TURN):
                piece = os.read(self._shell.master, READ)
                if not piece:
                    break
                pieces.append(piece)
        except BlockingIOError:
            pass
        except OSError:
            self._shell_gone = True
            self._watch_shell()
        return b"".join(pieces)

    def _output(self, data: bytes) -> None:
        if not data:
            return
        self._tape.output(data)
        if self._fresh is not None:
            self._fresh = self._fresh + data if len(self._fresh) < FRESH_BYTES else None
        if self._viewer is not None:
            self._viewer.send(data)
            if self._viewer.pending or not self._viewer.open:
                self._watch_viewer()

    def _shell_ended(self, _mask: int) -> None:
        self._ending = True

    def _drain(self) -> None:
        """Take what the shell had written when it ended; what it left in the background may write for ever."""
        for _ in range(READS_A_TURN):
            self._output(self._take())

    def _type(self, data: bytes) -> None:
        if self._order.record_input:
            self._record_input(data)
        self._typed += data
        self._write_typed()

    def _record_input(self, data: bytes) -> None:
        echo = self._shell.echoes
        if echo != self._echo:
            self._echo = echo
            self._tape.other(Kind.ECHO, bytes([echo]))
        if echo:
            self._tape.other(Kind.INPUT, data)

    def _write_typed(self) -> None:
        try:
            while self._typed:
                del self._typed[: os.write(self._shell.master, self._typed[:READ])]
        except BlockingIOError:
            pass
        except OSError:
            self._typed.clear()
        self._watch_shell()
        self._watch_viewer()

    def _watch_shell(self) -> None:
        """Listen to the terminal for what is wanted of it now."""
        behind = self._viewer is not None and self._viewer.behind
        mask = (
            0
            if self._shell_gone
            else (0 if behind else selectors.EVENT_READ) | (selectors.EVENT_WRITE if self._typed else 0)
        )
        master = self._shell.master
        known = self._selector.get_map().get(master)
        if known is not None and not mask:
            self._selector.unregister(master)
        elif mask and known is None:
            self._selector.register(master, mask, self._shell_ready)
        elif mask and known is not None and known.events != mask:
            self._selector.modify(master, mask, self._shell_ready)

    def _shell_ready(self, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._write_typed()
        if mask & selectors.EVENT_READ:
            self._shell_wrote(mask)

    # The terminal attached

    def _accept(self, _mask: int) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            viewer = Viewer(connection)
            self._selector.register(connection, selectors.EVENT_READ, lambda mask: self._heard(viewer, mask))

    def _heard(self, viewer: Viewer, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                viewer.flush()
                self._watch_viewer()
                self._watch_shell()
            if mask & selectors.EVENT_READ:
                for kind, payload in viewer.receive():
                    self._obey(viewer, kind, payload)
        except (OSError, EOFError, FrameBroken, msgspec.DecodeError, ValueError):
            self._drop(viewer)

    def _obey(self, viewer: Viewer, kind: Frame, payload: bytes) -> None:
        if kind is Frame.HELLO:
            self._attach(viewer, msgspec.json.decode(payload, type=Hello))
        elif viewer is not self._viewer:
            raise FrameBroken("the first frame is not a hello")
        elif kind is Frame.INPUT:
            self._type(payload)
        elif kind is Frame.RESIZE:
            self._resize(*unpack_size(payload))
        elif kind is Frame.DETACH:
            self._drop(viewer)

    def _attach(self, viewer: Viewer, hello: Hello) -> None:
        if self._viewer is not None:
            previous, self._viewer = self._viewer, None
            previous.send_frame(pack_frame(Frame.TAKEN))
            self._forget(previous)
        self._viewer = viewer
        self._resize(hello.rows, hello.cols)
        self._tape.mark(Marker(MarkerKind.ATTACHED))
        viewer.send(self._picture())
        self._watch_viewer()
        self._watch_shell()
        self._say()

    def _picture(self) -> bytes:
        """Return what draws the shell's screen as it is now."""
        if self._fresh is not None:
            # The first terminal sees the beginning itself, questions included: the shell waits for the answers.
            fresh, self._fresh = self._fresh, None
            return fresh
        try:
            terminal, exact = Player(self._order.folder).terminal_at_end()
        except (RecordingUnreadable, OSError):
            terminal, exact = None, False
        if terminal is None or not exact or self._tape.gap_open is not None:
            self._shell.nudge()
        return RESTORE if terminal is None else redraw(terminal)

    def _resize(self, rows: int, cols: int) -> None:
        rows, cols = min(max(rows, 1), 1000), min(max(cols, 1), 2000)
        self._shell.resize(rows, cols)
        self._tape.resized(rows, cols)

    def _watch_viewer(self) -> None:
        viewer = self._viewer
        if viewer is not None and viewer.open:
            reads = selectors.EVENT_READ if len(self._typed) < TYPED_BYTES else 0
            mask = reads | (selectors.EVENT_WRITE if viewer.pending else 0)
            if not mask:
                return
            if self._selector.get_key(viewer.connection).events != mask:
                self._selector.modify(viewer.connection, mask, lambda mask: self._heard(viewer, mask))
        elif viewer is not None:
            self._drop(viewer)

    def _drop(self, viewer: Viewer) -> None:
        if viewer is self._viewer:
            self._viewer = None
            self._tape.mark(Marker(MarkerKind.DETACHED))
            self._watch_shell()
            self._say()
        self._forget(viewer)

    def _forget(self, viewer: Viewer) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(viewer.connection)
        viewer.close()

    # Once a second, and at the end

    def _tick(self) -> None:
        self._tape.tick()
        self._say()
        self._start_indexer()

    def _say(self) -> None:
        light, reason = self._tape.light()
        tape = self._tape
        self._status = replace(
            self._status, heartbeat=boottime(), attached=self._viewer is not None, light=light, reason=reason,
            output_bytes=tape.output_bytes, gaps=tape.gaps, bytes_lost=tape.bytes_lost,
            last_gap=tape.last_gap[:200], gap_open=tape.gap_open,
        )  # fmt: skip
        self._standing.say(self._status)

    def _start_indexer(self) -> None:
        if self._indexer is not None and self._indexer.poll() is None:
            return
        self._indexer = None
        if self._tape.light()[0] is Light.GREEN and (
            self._tape.segments_closed - self._indexed >= (1 if self._ending else KEYFRAMES_EVERY)
        ):
            self._indexed = self._tape.segments_closed
            self._indexer = start_building(self._order.folder)

    def _signalled(self, _mask: int) -> None:
        self._wake.recv(64)
        self._shell.kill()
        self._ending = True

    def _finish(self, code: int, stage: Stage, reason: str) -> None:
        self._ending = True
        self._start_indexer()
        figures: Figures = self._tape.close()
        self._say()
        self._status = replace(
            self._status, stage=stage, exit_code=code, output_bytes=figures.output_bytes,
            sha256=figures.sha256, attached=False, reason=reason or self._status.reason,
        )  # fmt: skip
        self._standing.say(self._status)
        self._listener.close()
        self._order.socket.unlink(missing_ok=True)


def listen(path: Path, owner: int | None) -> socket.socket:
    """Open the socket terminals attach to, for its owner alone."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise OSError(
            f"the recorder cannot listen at {path} ({len(str(path))} characters): {error}"
        ) from error
    path.chmod(0o600)
    if owner is not None:
        os.chown(path, owner, -1)
    listener.listen(8)
    listener.setblocking(False)
    return listener


def main(arguments: list[str]) -> int:
    order = order_of(arguments)
    try:
        return Recorder(order).run()
    except (RecorderBusy, OSError) as error:
        sys.stderr.write(f"recorder {order.number}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
