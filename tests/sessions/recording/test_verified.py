"""`verify` holds every recording to what the log says of it."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from pathlib import Path

import pytest

from sessions.audit.bundles import bundle
from sessions.audit.verify import verify
from sessions.record.events import ShellClosed, ShellOpened
from sessions.record.store import Record
from sessions.recording.keyframes import build_keyframes
from sessions.recording.reader import evidence_of
from sessions.recording.writer import Rotation
from tests.sessions.bench import ME, Bench
from tests.sessions.builders import valid
from tests.sessions.recording_support import write_recording


@pytest.fixture
async def recorded(tmp_path: Path) -> Record:
    """A session with one recorded shell that has ended, and a second that goes on."""
    bench = Bench(tmp_path, valid(1.5))
    await bench.running()
    for number in (1, 2):
        folder = bench.record.recordings / str(number)
        figures = write_recording(folder, [b"x" * 100] * 20, rotation=Rotation(bytes=400))
        bench.engine.journal.append(ShellOpened(number, "sh", 100 + number))
        if number == 1:
            bench.engine.journal.append(ShellClosed(1, 101, 0, figures.output_bytes, figures.sha256))
    await bench.die()
    return bench.record


def test_honest_recordings_are_sound(recorded: Record) -> None:
    report = verify(recorded)
    assert report.problems == ()
    assert report.remarks == ()


def test_an_end_that_was_cut_off_after_closing_is_damage(recorded: Record) -> None:
    evidence_of(recorded.recordings / "1")[-1].unlink()
    (problem,) = verify(recorded).problems
    assert "its end was changed or removed after it was closed" in problem


def test_a_recording_that_is_gone_is_missed(recorded: Record) -> None:
    shutil.rmtree(recorded.recordings / "1")
    assert verify(recorded).problems == ("recording 1 is missing: a shell was opened under it",)


def test_a_torn_end_of_a_shell_that_went_on_is_a_remark(recorded: Record) -> None:
    last = evidence_of(recorded.recordings / "2")[-1]
    raw = zlib.decompress(last.read_bytes())
    last.unlink()
    last.with_suffix("").write_bytes(raw[:-3])
    report = verify(recorded)
    assert report.problems == ()
    (remark,) = report.remarks
    assert remark.startswith("recording 2: segment ")
    assert "torn tail" in remark


async def test_keyframes_made_after_closing_change_no_digest_and_travel_in_no_bundle(tmp_path: Path) -> None:
    bench = Bench(tmp_path, valid(1.5))
    await bench.running()
    folder = bench.record.recordings / "1"
    figures = write_recording(folder, [b"x" * 100] * 20, rotation=Rotation(bytes=400))
    (folder / "recorder.status").write_bytes(b"of this machine")
    bench.engine.journal.append(ShellOpened(1, "sh", 101))
    bench.engine.journal.append(ShellClosed(1, 101, 0, figures.output_bytes, figures.sha256))
    bench.engine.submit(ME)
    await bench.engine.ending.until_finished()
    bench.engine.survey({}, ME)
    await bench.engine.ending.closed.wait()
    await bench.die()
    assert build_keyframes(folder) > 0
    assert verify(bench.record).problems == ()
    with tarfile.open(bundle(bench.record, tmp_path / "out.rebench.tar.gz")) as archive:
        names = [name for name in archive.getnames() if "/recordings/1/" in name]
    assert len(names) == len(evidence_of(folder))
