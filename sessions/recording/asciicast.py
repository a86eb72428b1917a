"""Writes a recording as asciicast v2 or v3, always valid UTF-8, by default with nothing that acts on a reviewer."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from datetime import UTC
from enum import IntEnum
from pathlib import Path
from typing import Any

from sessions.record.clock import parse_utc
from sessions.recording.escapes import Sanitiser
from sessions.recording.format import Chunk, Kind, Marker, MarkerKind, unpack_marker, unpack_size
from sessions.recording.reader import Recording


class Version(IntEnum):
    """Of the asciicast format; docs.asciinema.org/manual/asciicast describes both."""

    V2 = 2
    V3 = 3


def export(folder: Path, target: Path, version: Version = Version.V2, *, sanitised: bool = True) -> int:
    """Write the recording to `target` and return the number of its events.

    Raises:
        RecordingUnreadable: there is no recording.
        OSError: the target cannot be written.
    """
    count = 0
    draft = target.with_name(target.name + ".part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as out:
            for line in lines(Recording(folder), version, sanitised=sanitised):
                out.write(line + "\n")
                count += 1
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return count - 1


def lines(recording: Recording, version: Version = Version.V2, *, sanitised: bool = True) -> Iterator[str]:
    """Yield the header, then one line per event.

    `sanitised=False` keeps clipboard, title, link and device sequences: for machines, not for terminals.
    """
    yield _dump(_header(recording, version))
    show = _Decoding(sanitised=sanitised)
    began = recording.began
    size = (recording.headers[0].rows, recording.headers[0].cols)
    previous = 0.0
    for chunk in recording.chunks():
        now = max(previous, round((chunk.boottime - began) / 1e9, 6))
        if chunk.kind is Kind.RESIZE:
            if unpack_size(chunk.payload) == size:
                continue
            size = unpack_size(chunk.payload)
        code, text = _event(chunk, show, version)
        if code:
            yield _dump([round(now - previous, 6) if version is Version.V3 else now, code, text])
            previous = now
    if rest := show.rest():
        yield _dump([0.0 if version is Version.V3 else previous, "o", rest])


class _Decoding:
    """Turns bytes into text that is valid wherever a chunk was cut."""

    def __init__(self, *, sanitised: bool) -> None:
        self._sanitiser = Sanitiser() if sanitised else None
        decoder = codecs.getincrementaldecoder("utf-8")
        self._output, self._input = decoder("replace"), decoder("replace")

    def output(self, data: bytes) -> str:
        return self._output.decode(data) if self._sanitiser is None else self._sanitiser.pass_through(data)

    def input(self, data: bytes) -> str:
        return self._input.decode(data)

    def rest(self) -> str:
        """Return what a character cut off at the very end stands for."""
        if self._sanitiser is not None:
            return self._sanitiser.rest()
        return self._output.decode(b"", final=True)


def _event(chunk: Chunk, show: _Decoding, version: Version) -> tuple[str, str]:
    """Return an event's code and text; no code for what the format has no word for."""
    match chunk.kind:
        case Kind.OUTPUT:
            text = show.output(chunk.payload)
            return ("o" if text else ""), text
        case Kind.INPUT:
            text = show.input(chunk.payload)
            return ("i" if text else ""), text
        case Kind.RESIZE:
            rows, cols = unpack_size(chunk.payload)
            return "r", f"{cols}x{rows}"
        case Kind.ECHO:
            return "m", "echo on" if chunk.payload == b"\x01" else "echo off: typing is not recorded"
        case Kind.MARKER:
            marker = unpack_marker(chunk.payload)
            if marker.what is MarkerKind.CLOSED and version is Version.V3 and marker.exit_code is not None:
                return "x", str(marker.exit_code)
            return "m", _label(marker)


def _label(marker: Marker) -> str:
    match marker.what:
        case MarkerKind.GAP_BEGAN:
            return f"recording stops: {marker.why}"
        case MarkerKind.GAP_ENDED:
            return f"recording goes on: {marker.bytes_lost} bytes lost, {marker.why}"
        case MarkerKind.CLOSED:
            return f"shell ended with exit code {marker.exit_code}"
        case MarkerKind.OPENED:
            return "shell opened"
        case MarkerKind.ATTACHED | MarkerKind.DETACHED:
            return f"terminal {marker.what}"


def _header(recording: Recording, version: Version) -> dict[str, Any]:
    first = recording.headers[0]
    timestamp = int(parse_utc(first.at).replace(tzinfo=UTC).timestamp())
    title = f"recording {first.recording}"
    if version is Version.V3:
        return {
            "version": 3, "term": {"cols": first.cols, "rows": first.rows}, "timestamp": timestamp,
            "command": _printable(first.command), "title": title,
        }  # fmt: skip
    return {
        "version": 2, "width": first.cols, "height": first.rows, "timestamp": timestamp,
        "command": _printable(first.command), "title": title,
    }  # fmt: skip


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _dump(value: object) -> str:
    # ensure_ascii: neither half a surrogate nor a control character can make the file something else.
    return json.dumps(value, ensure_ascii=True, separators=(", ", ": "))
