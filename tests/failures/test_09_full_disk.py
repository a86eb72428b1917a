"""Row 9: a full disk turns the light red, costs the participant nothing, and the recording goes on afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sessions.record.events import HealthChanged, Light, RecordingGap, ShellClosed
from sessions.recording.handle import RecorderNotStarted, Recorders
from sessions.recording.player import screen_at
from sessions.recording.reader import Recording
from sessions.recording.recorder import boottime
from sessions.recording.verifying import verify
from sessions.recording.wire import Frame
from tests.sessions.recording_support import FakeTerminal, shell_request
from tests.waiting import wait_until

pytestmark = pytest.mark.failures


def mount_small(image: Path, mount: Path) -> bool:
    """Mount a file system of a few megabytes: ext4 on a loop device, else in memory."""
    mount.mkdir()
    image.write_bytes(b"")
    os.truncate(image, 6 << 20)
    attempts = (
        [["mkfs.ext4", "-q", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(mount)]],
        [["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(mount)]],
    )
    for commands in attempts:
        with suppress(OSError, subprocess.CalledProcessError):
            for command in commands:
                subprocess.run(command, check=True, capture_output=True)
            return True
    return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "small"
    if not mount_small(tmp_path / "image", mount):
        pytest.skip("mounting a small file system needs root; tests of the writer cover a disk that refuses")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def fill(path: Path) -> None:
    """Take every byte that is left."""
    with path.open("ab", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


async def test_a_full_disk_is_red_within_5_s_and_recording_resumes_when_space_returns(
    small_disk: Path, tmp_path: Path
) -> None:
    recorders = Recorders(small_disk / "recordings", boottime=boottime)
    handle = await recorders.start(shell_request(tmp_path))
    terminal = FakeTerminal(handle.socket)
    terminal.type(b"echo bef''ore\n")
    terminal.wait_for(b"before\r\n$ ")
    recorders.poll()

    fill(small_disk / "filler")
    filled = time.monotonic()
    events: list[object] = []
    typed = 0

    def red() -> bool:
        nonlocal typed
        typed += 1
        terminal.type(b"printf %05000d " + str(typed).encode() + b"\n")
        terminal.read()
        events.extend(recorders.poll())
        return any(isinstance(event, HealthChanged) and event.light is Light.RED for event in events)

    wait_until(red)
    assert time.monotonic() - filled < 5
    (health,) = [event for event in events if isinstance(event, HealthChanged)]
    assert "No space left on device" in health.reason

    # The policy: the participant works on, and sees everything.
    terminal.type(b"echo during-$((1+1))\n")
    terminal.wait_for(b"during-2")
    assert recorders.poll() == []

    (small_disk / "filler").unlink()
    events.clear()
    wait_until(lambda: events.extend(recorders.poll()) or len(events) >= 2)
    gap, green = events
    assert isinstance(gap, RecordingGap)
    assert gap.why == "No space left on device"
    assert green == HealthChanged(health.part, Light.GREEN)

    terminal.type(b"echo af''ter; exit\n")
    terminal.wait_for_frame(Frame.EXIT)
    events.clear()
    wait_until(lambda: events.extend(recorders.poll()) or events)
    (closed,) = events
    assert isinstance(closed, ShellClosed)
    output = b"".join(Recording(handle.folder).output())
    assert b"before" in output
    assert b"after" in output
    # What was on the screen last during the gap is known, the rest is counted.
    assert b"during-2" in output
    assert len(output) + gap.bytes_lost == len(terminal.output) == closed.bytes + gap.bytes_lost
    assert verify(handle.folder, closed.sha256) == ()
    assert "after" in screen_at(small_disk, 1, 1 << 62).text()


async def test_a_disk_that_is_full_from_the_start_refuses_the_shell_and_says_why(
    small_disk: Path, tmp_path: Path
) -> None:
    recorders = Recorders(small_disk / "recordings", boottime=boottime)
    fill(small_disk / "filler")
    with pytest.raises(RecorderNotStarted, match="No space left on device"):
        await recorders.start(shell_request(tmp_path), log=tmp_path / "host.log")
