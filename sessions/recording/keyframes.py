"""Keyframes: what the terminal showed at the start of each segment, cached beside the recording for seeking.

    python -m sessions.recording.keyframes FOLDER

They are no evidence. Each names the hash of the segment before it, so that one left from another recording is
not used; whoever doubts them deletes the folder and they are made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sessions.recording.format import KEYFRAME_FOLDER, Chunk, Kind, SegmentDamaged, unpack_size
from sessions.recording.reader import Recording, RecordingUnreadable
from sessions.recording.terminal import Terminal

_VERSION = b"RBWKEY1\n"
_MOST_STATE = 64 << 20


def keyframe_path(folder: Path, segment: int) -> Path:
    return folder / KEYFRAME_FOLDER / f"{segment:06d}.key"


def load_keyframe(folder: Path, segment: int, prev: str) -> Terminal | None:
    """Return the terminal as the segment begins, or None where it was not made or is not of this recording."""
    try:
        data = keyframe_path(folder, segment).read_bytes()
        magic, seal, packed = data[:8], data[8:40], data[40:]
        if magic != _VERSION or seal != bytes.fromhex(prev):
            return None
        return Terminal.thaw(zlib.decompressobj().decompress(packed, _MOST_STATE))
    except (OSError, ValueError, zlib.error):
        return None


def save_keyframe(folder: Path, segment: int, prev: str, terminal: Terminal) -> None:
    path = keyframe_path(folder, segment)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    try:
        draft.write_bytes(_VERSION + bytes.fromhex(prev) + zlib.compress(terminal.freeze(), 3))
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def play_chunk(terminal: Terminal, chunk: Chunk) -> None:
    """Let a terminal see what one chunk says."""
    if chunk.kind is Kind.OUTPUT:
        terminal.feed(chunk.payload)
    elif chunk.kind is Kind.RESIZE:
        rows, cols = unpack_size(chunk.payload)
        if (rows, cols) != (terminal.grid.rows, terminal.grid.cols):
            terminal.resize(rows, cols)


def build_keyframes(folder: Path) -> int:
    """Make the keyframes that are missing and return how many were made; the last segment's end needs none.

    Raises:
        RecordingUnreadable: there is no recording.
        OSError: they cannot be written.
    """
    recording = Recording(folder)
    headers = recording.headers
    have = max(
        (h.segment for h in headers if h.segment and keyframe_path(folder, h.segment).exists()), default=0
    )
    terminal = load_keyframe(folder, have, headers[have].prev) if have else None
    if terminal is None:
        have = 0
        terminal = Terminal(headers[0].rows, headers[0].cols)
    made = 0
    for number in range(have, len(headers) - 1):
        with suppress(SegmentDamaged):
            segment = recording.segment(number)
            for chunk in segment.chunks():
                play_chunk(terminal, chunk)
            if sha256(segment.data).hexdigest() != headers[number + 1].prev:
                # Not what was recorded: `verify` says so, and no cached screen may hide it.
                return made
        save_keyframe(folder, number + 1, headers[number + 1].prev, terminal)
        made += 1
    return made


def start_building(folder: Path) -> subprocess.Popen[bytes]:
    """Make the missing keyframes in a process of their own, at the lowest priority; whoever calls reaps it."""
    return subprocess.Popen(
        [sys.executable, "-m", "sessions.recording.keyframes", str(folder.absolute())],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def main(arguments: list[str]) -> int:
    """Make keyframes at the lowest priority."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        build_keyframes(Path(arguments[0]))
    except (RecordingUnreadable, OSError) as error:
        sys.stderr.write(f"keyframes of {arguments[0]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
