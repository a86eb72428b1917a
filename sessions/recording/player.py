"""Shows what a recording's terminal showed at any moment."""

from __future__ import annotations

from pathlib import Path

from sessions.recording.format import Chunk, Kind, Marker, MarkerKind, SegmentDamaged, unpack_marker
from sessions.recording.keyframes import keyframe_path, load_keyframe, play_chunk
from sessions.recording.reader import Recording
from sessions.recording.screen import Screen
from sessions.recording.terminal import Terminal

LOOK_BACK = 1
"""Segments read before the wanted one when no keyframe is near; more would take longer than a person waits."""


class Player:
    """A recording and a place in it; going forward from where one is costs only what lies between.

    Raises:
        RecordingUnreadable: there is no recording.
    """

    def __init__(self, folder: Path) -> None:
        self.recording = Recording(folder)
        self._terminal: Terminal | None = None
        self._segment = -1
        self._chunk = 0
        self._exact = True
        self._at = -1
        self._remark = ""
        self._read: tuple[int, list[Chunk]] = (-1, [])

    def screen_at(self, boottime: int) -> Screen:
        """Return the screen at a boot-time moment; a moment after the end shows the end."""
        self.recording.refresh()
        wanted = self.recording.segment_at(boottime)
        if (
            self._terminal is None
            or boottime < self._at
            or wanted > self._segment + LOOK_BACK
            or (not self._exact and keyframe_path(self.recording.folder, wanted).exists())
        ):
            self._start(wanted)
        terminal = self._advance(boottime)
        return terminal.screen(exact=self._exact, remark=self._remark)

    def terminal_at_end(self) -> tuple[Terminal, bool]:
        """Return the terminal after all that was recorded, and whether it is exact."""
        self.recording.refresh()
        self._start(len(self.recording.headers) - 1)
        return self._advance(1 << 62), self._exact

    def _start(self, wanted: int) -> None:
        """Stand at the nearest known state at or before a segment."""
        headers, folder = self.recording.headers, self.recording.folder
        self._remark, self._chunk = "", 0
        for number in range(wanted, max(0, wanted - LOOK_BACK) - 1, -1):
            if number == 0:
                break
            terminal = load_keyframe(folder, number, headers[number].prev)
            if terminal is not None:
                self._terminal, self._segment, self._exact = terminal, number, True
                return
        first = max(0, wanted - LOOK_BACK)
        self._terminal = Terminal(headers[first].rows, headers[first].cols)
        self._segment, self._exact = first, first == 0

    def _advance(self, boottime: int) -> Terminal:
        terminal = self._terminal
        assert terminal is not None
        self._at = boottime
        while self._segment < len(self.recording.headers):
            if self.recording.headers[self._segment].boottime > boottime and self._chunk == 0:
                return terminal
            if self._play_segment(terminal, boottime):
                return terminal
            if self._segment + 1 == len(self.recording.headers):
                return terminal
            self._segment, self._chunk = self._segment + 1, 0
        return terminal

    def _play_segment(self, terminal: Terminal, boottime: int) -> bool:
        """Play the segment from where it was left; True when the moment lies inside it."""
        try:
            chunks = self._chunks()
        except SegmentDamaged as error:
            self._exact, self._remark = False, f"a part before this moment cannot be read: {error}"
            return False
        for index in range(self._chunk, len(chunks)):
            chunk = chunks[index]
            if chunk.boottime > boottime:
                return True
            if chunk.kind is Kind.MARKER:
                self._note(unpack_marker(chunk.payload))
            else:
                play_chunk(terminal, chunk)
            self._chunk = index + 1
        return False

    def _chunks(self) -> list[Chunk]:
        """Return the segment's chunks; those of a segment that is no longer written are read once."""
        if self._read[0] != self._segment:
            chunks = list(self.recording.segment(self._segment).chunks())
            if self._segment + 1 == len(self.recording.headers):
                return chunks
            self._read = (self._segment, chunks)
        return self._read[1]

    def _note(self, marker: Marker) -> None:
        if marker.what is MarkerKind.GAP_BEGAN:
            self._remark = f"not recorded from here: {marker.why}"
        elif marker.what is MarkerKind.GAP_ENDED:
            self._remark = f"{marker.bytes_lost} bytes before this were not recorded: {marker.why}"
        elif marker.what is MarkerKind.CLOSED:
            self._remark = f"the shell ended with exit code {marker.exit_code}"


def screen_at(record: Path, number: int, boottime: int) -> Screen:
    """Return what recording `number` of the record showed at a boot-time moment.

    Raises:
        RecordingUnreadable: there is no such recording.
    """
    return Player(record / "recordings" / str(number)).screen_at(boottime)
