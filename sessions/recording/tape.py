"""What a recorder does with each thing that happens: write it, or open a gap and say so."""

from __future__ import annotations

from collections import deque

from sessions.record.events import Light
from sessions.recording.flood import FloodGate
from sessions.recording.format import Kind, Marker, MarkerKind, pack_marker, pack_size
from sessions.recording.writer import Figures, Nanoseconds, SegmentWriter

KEPT_BYTES = 64 << 10
"""The last of a gap that is written when it ends, so that a replay shows what the participant saw then."""
_RETRY = 1_000_000_000


class Tape:
    """A segment writer that never fails: what cannot be written is a gap with a reason and a size."""

    def __init__(self, writer: SegmentWriter, gate: FloodGate, nanoseconds: Nanoseconds) -> None:
        self._writer = writer
        self._gate = gate
        self._nanoseconds = nanoseconds
        self._owed: deque[tuple[Kind, bytes]] = deque()
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._missed = 0
        self._retry_at = 0
        self._disk: str | None = None
        self.gap_open: str | None = None
        self.gaps = 0
        self.bytes_lost = 0
        self.last_gap = ""

    @property
    def output_bytes(self) -> int:
        return self._writer.output_bytes

    @property
    def segments_closed(self) -> int:
        return self._writer.segments_closed

    def light(self) -> tuple[Light, str]:
        """Return how the recording is, with a reason unless green."""
        if self._disk is not None:
            return Light.RED, f"not recording: {self._disk}"
        if self.gap_open is not None:
            return Light.AMBER, f"not recording: {self.gap_open}"
        if self._writer.trouble:
            return Light.AMBER, f"recorded, but not safely on disk: {self._writer.trouble}"
        return Light.GREEN, ""

    def output(self, data: bytes) -> None:
        """Record what the shell wrote."""
        now = self._nanoseconds()
        if self._disk is not None and now < self._retry_at:
            self._miss(data)
            return
        why = self._gate.admits(len(data), now)
        if why is not None:
            self._begin_gap(why)
            self._miss(data)
            return
        if self._resume():
            self._write(Kind.OUTPUT, data)
        else:
            self._miss(data)

    def other(self, kind: Kind, payload: bytes) -> None:
        """Record anything but output: small, never dropped, written late when the disk is full."""
        self._owed.append((kind, payload))
        if self._disk is None:
            self._pay()

    def resized(self, rows: int, cols: int) -> None:
        self.other(Kind.RESIZE, pack_size(rows, cols))

    def mark(self, marker: Marker) -> None:
        self.other(Kind.MARKER, pack_marker(marker))

    def tick(self) -> None:
        """Try again what failed, and end a flood's gap when it has gone quiet."""
        now = self._nanoseconds()
        if self._disk is not None:
            due = now >= self._retry_at
        else:
            due = self.gap_open is not None and self._gate.admits(0, now) is None
        if due:
            self._resume()

    def close(self) -> Figures:
        """End the recording; what is still owed and cannot be written is lost and counted."""
        self._resume()
        return self._writer.close()

    def _write(self, kind: Kind, payload: bytes) -> bool:
        try:
            self._writer.append(kind, payload)
        except OSError as error:
            self._disk = error.strerror or str(error)
            self._retry_at = self._nanoseconds() + _RETRY
            self.gap_open = self._disk
            if kind is Kind.OUTPUT:
                self._miss(payload)
            return False
        return True

    def _pay(self) -> bool:
        while self._owed:
            kind, payload = self._owed[0]
            if not self._write(kind, payload):
                return False
            self._owed.popleft()
        return True

    def _begin_gap(self, why: str) -> None:
        if self.gap_open is None:
            self.gap_open = why
            self.mark(Marker(MarkerKind.GAP_BEGAN, why))

    def _miss(self, data: bytes) -> None:
        self._missed += len(data)
        self._kept.append(data)
        self._kept_bytes += len(data)
        while self._kept_bytes - len(self._kept[0]) >= KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft())

    def _resume(self) -> bool:
        """End an open gap; False when the disk still refuses."""
        if self.gap_open is None:
            return True
        if not self._pay():
            return False
        why, kept = self.gap_open, b"".join(self._kept)
        lost = self._missed - len(kept)
        if not self._write(Kind.MARKER, pack_marker(Marker(MarkerKind.GAP_ENDED, why, lost))):
            return False
        self._disk = self.gap_open = None
        self._kept.clear()
        self._kept_bytes = self._missed = 0
        self.gaps += 1
        self.bytes_lost += lost
        self.last_gap = why
        # Should the disk refuse this, it is the beginning of the next gap.
        return not kept or self._write(Kind.OUTPUT, kept)
