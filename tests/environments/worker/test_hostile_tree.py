"""What a worker may do to its own processes and to a folder that it may write to, and what it does not get out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.contract import ScoreStatus
from environments.worker import (
    Answered,
    Failed,
    FailureKind,
    Level,
    Mount,
    WorkerJob,
    WorkerLimits,
    confine,
    open_worker,
    run_untrusted,
)
from environments.worker.control import ControlGroup
from environments.worker.owners import remove
from environments.worker.room import Room

SANDBOXED = [level for level in confine.levels() if level in (Level.SANDBOX, Level.SANDBOX_ACCOUNT)]
WAKES_ITSELF = """
import ctypes, mmap, os, signal, struct, threading

def answer(request):
    with open(request.places["work"] / "count", "r+b") as file:
        count = mmap.mmap(file.fileno(), 8)
    def on():
        while True:
            count[:] = (int.from_bytes(count[:], "little") + 1).to_bytes(8, "little")
    threading.Thread(target=on, daemon=True).start()
    signal.signal(signal.SIGCONT, lambda number, frame: None)
    timer, libc = ctypes.c_void_p(), ctypes.CDLL(None)
    event = struct.pack("Qii48x", 0, signal.SIGCONT, 0)
    assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
    assert libc.timer_settime(timer, 0, struct.pack("4l", 0, 20_000_000, 0, 20_000_000), None) == 0
    return {}, {}
"""
HAS_COMPANY = """
import subprocess, threading

def spin():
    while True:
        pass

def answer(request):
    threading.Thread(target=spin, daemon=True).start()
    subprocess.Popen(["sleep", "100"])
    subprocess.Popen(["true"])
    return {}, {}
"""
FOLDERS_IN_EACH_OTHER = """
import os

def answer(request):
    os.chdir(request.places["work"])
    for _ in range({depth}):
        os.mkdir("{name}")
        os.chdir("{name}")
    os.chmod(".", 0)
    return {{}}, {{}}
"""
FILLS_THE_DISK = """
import os, time

def answer(request):
    file = os.open(request.places["work"] / "x", os.O_RDWR | os.O_CREAT)
    {hide}
    os.posix_fallocate(file, 0, 200 * 2**20)
    time.sleep(60)
"""


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A folder that the worker may write to, which pytest itself could not delete afterwards."""
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    remove(folder)


def job(tmp_path: Path, work: Path, entry: str, **limits: object) -> WorkerJob:
    script = tmp_path / "entry.py"
    script.write_text(entry)
    allowed = WorkerLimits(**{"seconds": 20.0, "memory_gb": 0.5, **limits})  # type: ignore[arg-type]
    return WorkerJob(entry=script, mounts={"work": Mount(work, writable=True)}, limits=allowed)


@pytest.mark.parametrize("freezer", [True, False], ids=["freezer", "stop-signal"])
def test_a_worker_that_wakes_itself_from_a_stop_stays_stopped_or_is_refused(
    tmp_path: Path, work: Path, freezer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "count").write_bytes(bytes(8))
    if not freezer:
        monkeypatch.setattr(ControlGroup, "freeze", lambda self, seconds: False)
    with open_worker(job(tmp_path, work, WAKES_ITSELF)) as worker:
        assert isinstance(worker.ask({}, {}), Answered)
        failed = worker.freeze()
        before = (work / "count").read_bytes()
        sum(range(10_000_000))
        moved = (work / "count").read_bytes() != before
        failed = failed or worker.stayed_frozen()
    assert failed is not None or not moved
    if failed is not None:
        assert failed.status is ScoreStatus.INVALID


@pytest.mark.parametrize("freezer", [True, False], ids=["freezer", "stop-signal"])
def test_an_honest_worker_stays_frozen_and_goes_on_afterwards(
    tmp_path: Path, work: Path, freezer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not freezer:
        monkeypatch.setattr(ControlGroup, "freeze", lambda self, seconds: False)
    with open_worker(job(tmp_path, work, HAS_COMPANY)) as worker:
        for _ in range(3):
            assert isinstance(worker.ask({}, {}), Answered)
            assert worker.freeze() is None
            sum(range(1_000_000))
            assert worker.stayed_frozen() is None
            worker.thaw()


@pytest.mark.parametrize(("depth", "name"), [(1100, "d"), (30, "d" * 250)], ids=["deep", "long"])
@pytest.mark.parametrize("level", confine.levels(), ids=lambda level: level.value)
def test_folders_too_deep_for_python_to_walk_are_given_back_and_removed(
    tmp_path: Path, work: Path, level: Level, depth: int, name: str
) -> None:
    work.chmod(0o755)
    entry = FOLDERS_IN_EACH_OTHER.format(depth=depth, name=name)
    asked = job(tmp_path, work, entry)
    if level is Level.ACCOUNT and not confine.open_to_others(str(work)):
        pytest.skip("another account cannot reach this temporary folder")
    outcome = run_untrusted(asked, level=level)
    assert isinstance(outcome, Answered), outcome
    assert (work / name).stat().st_uid == os.getuid()
    remove(work)
    assert not work.exists()


@pytest.mark.parametrize(("depth", "name"), [(1100, "d"), (30, "d" * 250)], ids=["deep", "long"])
def test_a_snapshot_of_folders_in_each_other_is_shown_like_any_other(
    tmp_path: Path, work: Path, depth: int, name: str
) -> None:
    (work / "file").write_text("read")
    (work / "file").chmod(0o600)
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(work)
        for _ in range(depth):
            os.mkdir(name)  # noqa: PTH102  (the whole path would be too long)
            os.chdir(name)
    finally:
        os.fchdir(here)
        os.close(here)
    script = tmp_path / "entry.py"
    script.write_text(
        "def answer(request):\n    return {'said': (request.places['root'] / 'file').read_text()}, {}\n"
    )
    limits = WorkerLimits(seconds=20.0, memory_gb=0.5)
    outcome = run_untrusted(WorkerJob(entry=script, mounts={"root": Mount(work)}, limits=limits))
    assert isinstance(outcome, Answered), outcome
    assert outcome.body == {"said": "read"}


@pytest.mark.skipif(not SANDBOXED, reason="needs bubblewrap")
@pytest.mark.parametrize(
    "hide", ["pass", "os.unlink(request.places['work'] / 'x')"], ids=["named", "nameless"]
)
def test_a_worker_that_writes_more_than_its_room_is_ended(tmp_path: Path, work: Path, hide: str) -> None:
    outcome = run_untrusted(job(tmp_path, work, FILLS_THE_DISK.format(hide=hide), disk_gb=0.1))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.CRASHED
    assert "wrote more than 0.1 GB" in outcome.message


def test_many_small_files_are_as_much_as_a_few_large_ones(work: Path) -> None:
    room = Room([work], most_bytes=2**40, most_files=200)
    assert not room.is_overrun([])
    for number in range(300):
        (work / str(number)).touch()
    assert room.is_overrun([])


def test_what_others_write_on_the_same_disk_is_not_held_against_a_worker(tmp_path: Path, work: Path) -> None:
    room = Room([work], most_bytes=20 * 2**20, most_files=200)
    (tmp_path / "others").mkdir()
    for number in range(300):
        (tmp_path / "others" / str(number)).touch()
    (tmp_path / "others" / "large").write_bytes(os.urandom(40 * 2**20))
    assert not room.is_overrun([])


def test_the_time_until_a_worker_is_gone_is_told_once_it_is_concluded(tmp_path: Path, work: Path) -> None:
    entry = "def answer(request):\n    return {}, {}\n"
    outcome = run_untrusted(job(tmp_path, work, entry))
    assert isinstance(outcome, Answered)
    assert outcome.seconds_until_gone is not None
    assert outcome.seconds <= outcome.seconds_until_gone < 15.0
