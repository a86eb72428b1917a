"""Row 10: whatever bytes a program writes, the record holds exactly those, and the export is valid UTF-8."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions.record.events import ShellClosed
from sessions.recording.asciicast import Version, export
from sessions.recording.handle import Recorders
from sessions.recording.reader import Recording
from sessions.recording.recorder import boottime
from tests.sessions.recording_support import shell_request, write_recording
from tests.waiting import wait_until

pytestmark = pytest.mark.failures


def exported(folder: Path, version: Version, *, sanitised: bool) -> str:
    target = folder.parent / f"out-{version}.cast"
    export(folder, target, version, sanitised=sanitised)
    text = target.read_bytes().decode("utf-8", errors="strict")
    events = [json.loads(line) for line in text.splitlines()]
    assert events[0]["version"] == version
    return "".join(event[2] for event in events[1:] if event[1] == "o")


@pytest.mark.parametrize("version", list(Version))
def test_random_bytes_are_kept_exactly_and_exported_as_valid_utf8(tmp_path: Path, version: Version) -> None:
    noise = random.Random(10)
    chunks = [noise.randbytes(noise.randrange(1, 5000)) for _ in range(60)]
    write_recording(tmp_path / "1", chunks)
    assert b"".join(Recording(tmp_path / "1").output()) == b"".join(chunks)
    for sanitised in (True, False):
        assert exported(tmp_path / "1", version, sanitised=sanitised).encode("utf-8")


@given(text=st.text(min_size=1, max_size=40), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_characters_split_between_chunks_come_out_whole(
    tmp_path: Path, text: str, data: st.DataObject
) -> None:
    whole = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    folder = Path(data.draw(st.uuids()).hex)
    folder = tmp_path / folder / "1"
    write_recording(folder, [piece for piece in pieces if piece])
    assert exported(folder, Version.V2, sanitised=False) == text
    assert exported(folder, Version.V3, sanitised=False) == text


def test_a_character_cut_off_at_the_very_end_is_replaced_and_not_dropped(tmp_path: Path) -> None:
    write_recording(tmp_path / "1", [b"ok \xe4\xb8"])
    assert exported(tmp_path / "1", Version.V2, sanitised=True) == "ok \ufffd"
    assert exported(tmp_path / "1", Version.V2, sanitised=False) == "ok \ufffd"


async def test_a_real_shell_that_prints_every_byte_is_recorded_exactly(tmp_path: Path) -> None:
    noise = random.Random(3).randbytes(200_000)
    (tmp_path / "noise").write_bytes(noise)
    recorders = Recorders(tmp_path / "recordings", boottime=boottime)
    # Without output processing the terminal adds no carriage returns: byte for byte.
    handle = await recorders.start(shell_request(tmp_path, ("/bin/sh", "-c", "stty raw; cat noise")))
    events: list[object] = []
    wait_until(lambda: events.extend(recorders.poll()) or any(isinstance(e, ShellClosed) for e in events))
    assert b"".join(Recording(handle.folder).output()) == noise
