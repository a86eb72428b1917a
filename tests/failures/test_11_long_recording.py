"""Row 11: 100 MB of full-screen redraws opens in under 2 s and seeks to 95 % in under 1 s."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sessions.recording.keyframes import build_keyframes, keyframe_path
from sessions.recording.player import Player
from sessions.recording.terminal import Terminal
from sessions.recording.writer import Rotation
from tests.sessions.recording_support import write_recording

pytestmark = pytest.mark.failures

MEASURE = """
import json, resource, sys, time
from pathlib import Path
from sessions.recording.player import Player
began = time.process_time()
player = Player(Path(sys.argv[1]))
first = player.screen_at(player.recording.began)
opened = time.process_time()
start, end = player.recording.began, player.recording.ended()
at = time.process_time()
screen = player.screen_at(start + (end - start) * 95 // 100)
sought = time.process_time()
print(json.dumps({"open": opened - began, "seek": sought - at, "exact": screen.exact,
    "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "text": screen.text()}))
"""


def redraws(count: int) -> list[bytes]:
    """What a monitor at 50 x 120 writes: every line anew, in colours."""
    frames = []
    for frame in range(count):
        lines = [
            f"\x1b[{row + 1};1H\x1b[3{(row + frame) % 8}m{row:3d}\x1b[0m loss {1 / (frame + 1):.6f} \x1b[1mstep\x1b[0m {frame}"
            f" {'#' * ((row + frame) % 70)}\x1b[K"
            for row in range(50)
        ]
        frames.append("".join(lines).encode())
    return frames


def measure(folder: Path) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(folder)], check=True, capture_output=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.timeout(300)
def test_100_mb_of_redraws_open_within_2_s_and_seek_to_95_percent_within_1_s(tmp_path: Path) -> None:
    frames = redraws(2000)
    repeats = 100_000_000 // sum(map(len, frames)) + 1
    write_recording(tmp_path / "1", frames * repeats, size=(50, 120), seconds_apart=0.05)
    before = measure(tmp_path / "1")
    build_keyframes(tmp_path / "1")
    after = measure(tmp_path / "1")
    for found in (before, after):
        assert found["open"] < 2
        assert found["seek"] < 1
        assert found["mib"] < 400
        assert "loss" in found["text"]
    assert after["exact"] is True


def small(folder: Path) -> tuple[Player, list[bytes]]:
    frames = [b"\x1b[?1049h\x1b[2;9r", *redraws(60)]
    write_recording(folder, frames, rotation=Rotation(bytes=20_000), size=(50, 120), seconds_apart=1)
    return Player(folder), frames


def truth(frames: list[bytes], seconds: int) -> str:
    terminal = Terminal(50, 120)
    for frame in frames[:seconds]:
        terminal.feed(frame)
    return terminal.screen().text()


def test_with_keyframes_every_moment_is_exact_whatever_the_order(tmp_path: Path) -> None:
    player, frames = small(tmp_path / "1")
    assert build_keyframes(tmp_path / "1") == len(player.recording.headers) - 1 > 5
    for seconds in (1, 60, 30, 31, 45, 2, 59):
        screen = player.screen_at(player.recording.began + seconds * 1_000_000_000)
        assert screen.exact
        assert screen.text() == truth(frames, seconds)


def test_without_keyframes_a_far_seek_says_that_it_is_not_exact_until_they_are_made(tmp_path: Path) -> None:
    player, frames = small(tmp_path / "1")
    moment = player.recording.began + 55 * 1_000_000_000
    assert not player.screen_at(moment).exact
    build_keyframes(tmp_path / "1")
    screen = player.screen_at(moment)
    assert screen.exact
    assert screen.text() == truth(frames, 55)


def test_keyframes_of_another_recording_are_not_used(tmp_path: Path) -> None:
    small(tmp_path / "1")
    build_keyframes(tmp_path / "1")
    frames = [b"\x1b[Hother" + bytes([65 + n % 26]) * 1000 for n in range(60)]
    write_recording(tmp_path / "2", frames, rotation=Rotation(bytes=20_000), size=(50, 120), seconds_apart=1)
    keyframe_path(tmp_path / "2", 1).parent.mkdir()
    keyframe_path(tmp_path / "2", 1).write_bytes(keyframe_path(tmp_path / "1", 1).read_bytes())
    player = Player(tmp_path / "2")
    moment = player.recording.headers[1].boottime
    seconds = round((moment - player.recording.began) / 1e9)
    assert player.screen_at(moment).text() == truth(frames, seconds)


def test_half_written_keyframes_do_no_harm(tmp_path: Path) -> None:
    player, frames = small(tmp_path / "1")
    build_keyframes(tmp_path / "1")
    for path in (tmp_path / "1" / "keyframes").iterdir():
        path.write_bytes(path.read_bytes()[:60])
    assert not player.screen_at(player.recording.began + 55 * 1_000_000_000).exact
    assert player.screen_at(player.recording.began + 3 * 1_000_000_000).text() == truth(frames, 3)
