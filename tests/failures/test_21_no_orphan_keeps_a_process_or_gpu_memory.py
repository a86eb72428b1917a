"""21 (NVIDIA-NeMo/RL 3592): after each score no process of ours is left and none of its GPU memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from environments.worker import (
    Answered,
    Failed,
    Level,
    Mount,
    WorkerJob,
    WorkerLimits,
    confine,
    gpu,
    run_untrusted,
)
from environments.worker.control import Roots

pytestmark = pytest.mark.failures

ENTRY = "def answer(request):\n    return {'said': request.load('model.py').said()}, {}\n"
ENDINGS = {
    "answers": "return 1",
    "raises": "raise ValueError",
    "crashes": "os.kill(os.getpid(), 11)",
    "exits": "os._exit(0)",
    "hangs": "time.sleep(600)",
    "runs out of memory": "kept = [bytearray(b'x' * 2**24) for _ in range(1000)]",
}
LEVELS = confine.levels()


def model(mark: str, ending: str) -> str:
    return f"""
import multiprocessing, os, subprocess, sys, time

def worker():
    os.setsid()
    time.sleep(600)

def said():
    for _ in range(2):
        multiprocessing.get_context("fork").Process(target=worker, daemon=False).start()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}], start_new_session=True)
    time.sleep(0.1)
    {ending}
"""


def left_behind(mark: str) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if mark in line]


@pytest.mark.parametrize("groups", [True, False], ids=["control groups", "no control groups"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_process_survives_however_the_score_ends(
    tmp_path: Path, ending: str, level: Level, groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not groups:
        monkeypatch.setattr(Roots, "of_this_process", classmethod(lambda cls: cls()))
    mark = f"orphan-{os.getpid()}-{ending.split(maxsplit=1)[0]}-{level.value}-{groups}"
    (tmp_path / "entry.py").write_text(ENTRY)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "model.py").write_text(model(mark, ENDINGS[ending]))
    limits = WorkerLimits(seconds=2.0, memory_gb=0.4)
    mounts = {"root": Mount(tmp_path / "root")}
    outcome = run_untrusted(WorkerJob(tmp_path / "entry.py", mounts, limits), level=level)
    assert isinstance(outcome, Answered if ending == "answers" else Failed)
    assert outcome.confinement.survivors == 0
    assert left_behind(mark) == []


def test_gpu_memory_is_waited_for_until_it_is_free() -> None:
    readings = iter([{100, 200}, {100}, set()])
    assert gpu.still_held({100, 300}, read=lambda: next(readings)) == 0


def test_gpu_memory_that_stays_is_counted() -> None:
    assert gpu.still_held({100, 300}, read=lambda: {100, 200}, seconds=0.1) == 1


def test_a_gpu_that_cannot_be_asked_is_unknown_and_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_pids: set[int]) -> int:
        raise gpu.GpuUnreadable("NVML does not answer")

    monkeypatch.setattr(gpu, "still_held", broken)
    (tmp_path / "entry.py").write_text("def answer(request):\n    return {}, {}\n")
    (tmp_path / "root").mkdir()
    mounts = {"root": Mount(tmp_path / "root")}
    outcome = run_untrusted(WorkerJob(tmp_path / "entry.py", mounts, WorkerLimits(seconds=5.0), gpus=True))
    assert outcome.confinement.gpu_survivors is None
