"""The bench of GPUs on a stand-in: when inputs appear, what late and stale results get, what the clock is charged with."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from environments.contract import ScoreStatus
from environments.triton_cumsum.timing import (
    Block,
    Case,
    NotTimed,
    Plan,
    Shapes,
    Steady,
    Timed,
    check_submission,
    time_submission,
    worker_job,
)
from environments.triton_cumsum.timing import bench as bench_module
from environments.triton_cumsum.timing.device_bench import DeviceBench
from environments.worker import Answered, Mount, WorkerJob, WorkerLimits, open_worker
from environments.worker.run import Worker
from tests.environments import device_twin

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
LENGTH = 400_000
SLOTS = 4
PLAN = Plan(seconds=20.0, call_seconds=5.0, open_seconds=20.0, least=4, most=6, warm_ups=(1, 1), known=4)
ENTRY = """
import device_twin
device_twin.install()
from environments.triton_cumsum.timing.serve import Server

answer = Server({load}).answer
"""
OF_SUBMISSION = 'lambda request: request.load("twice.py").twice'
COPY = "lambda request: (lambda x, out: out.copy_(x))"


class Twice:
    """int32 [n] times two."""

    inputs = (Block("int32", LENGTH),)
    output = Block("int32", LENGTH)
    tolerance = (0.0, 0.0)

    def __init__(self) -> None:
        self.timed = self.case(LENGTH)
        self.checks = (self.case(0), self.case(1), self.case(77), self.case(LENGTH))

    def case(self, length: int) -> Case:
        def draw(chance: Any) -> list[Any]:
            import torch

            return [torch.randint(-10, 10, (length,), generator=chance, dtype=torch.int32)]

        return Case(f"length {length}", Shapes(((length,),), (length,)), draw)

    def expected(self, inputs: Sequence[Any]) -> Any:
        return inputs[0] * 2


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeviceBench]:
    device_twin.install_for_scorer(monkeypatch.setattr)
    made = DeviceBench(Twice(), SLOTS, device_twin.DEVICE)
    yield made
    made.close()


@pytest.fixture
def job(bench: DeviceBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], WorkerJob]:
    """Return jobs on the stand-in; the known function's worker is put on it too."""
    known = tmp_path / "known.py"
    known.write_text(ENTRY.format(load=COPY))
    real = bench_module.worker_job

    def known_job(entry: Path, bench: Any, limits: WorkerLimits, **options: Any) -> WorkerJob:
        return real(known, bench, limits, modules=(HERE / "device_twin.py",), **options)

    monkeypatch.setattr("environments.triton_cumsum.timing.measure.worker_job", known_job)

    def make(body: str) -> WorkerJob:
        entry, root = tmp_path / "entry.py", tmp_path / "root"
        entry.write_text(ENTRY.format(load=OF_SUBMISSION))
        root.mkdir(exist_ok=True)
        (root / "twice.py").write_text(body)
        limits = WorkerLimits(seconds=20, memory_gb=2.0)
        return worker_job(
            entry, bench, limits, mounts={"root": Mount(root)}, modules=(HERE / "device_twin.py",)
        )

    return make


HONEST = "import torch\ndef twice(x, out):\n    return torch.mul(x, 2, out=out)\n"
LATER = """
import threading, time, torch
def twice(x, out):
    cut = len(x) - {share}
    if len(x) < 100:
        return x * 2
    out[:cut] = x[:cut] * 2
    def later():
        time.sleep(0.05)
        out[cut:] = x[cut:] * 2
    threading.Thread(target=later).start()
    return out
"""


def quiet(_progress: object) -> None:
    """Take progress and show nothing."""


def open_on(bench: DeviceBench, worker: Worker) -> None:
    for do in ("open", "load"):
        body = {"do": do, "layout": bench.layout.as_json(), "device": bench.device}
        assert isinstance(worker.ask(body, {}), Answered)


def timed(bench: DeviceBench, job: WorkerJob) -> Timed | NotTimed:
    return time_submission(bench, job, PLAN, random.Random(1), quiet)


def test_an_honest_function_is_timed_and_the_inputs_appearing_is_taken_off(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    found = timed(bench, job(HONEST))
    assert isinstance(found, Timed), found
    assert found.calls.median < found.measured.median
    assert found.own_reveal.median > 0
    assert found.overhead.median >= found.reveal.median > 0
    assert found.checked == len(bench.workload.checks) + SLOTS * (found.calls.count + 2)
    assert found.uncertainty >= found.calls.error > 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def twice(x):\n    return x * 3\n", "element 0 is"),
        ("def twice(x):\n    return x.mul_(2)\n", "the input was changed"),
        ("def twice(x):\n    return x\n", "expected"),
        ("def twice(x, out):\n    return out\n", "expected"),
        ("def twice(x):\n    return x.double() * 2\n", "torch.float64"),
        ("import numpy\ndef twice(x):\n    return numpy.asarray(x) * 2\n", "found ndarray"),
    ],
)
def test_a_wrong_result_is_named(
    bench: DeviceBench, job: Callable[[str], WorkerJob], body: str, says: str
) -> None:
    found = check_submission(bench, job(body), PLAN, quiet)
    assert found is not None
    assert found.status is ScoreStatus.INVALID
    assert says in found.message


@pytest.mark.parametrize("share", [LENGTH // 2, LENGTH // 1000, LENGTH // 20_000])
def test_a_part_of_the_result_that_comes_after_the_call_is_found_however_small(
    bench: DeviceBench, job: Callable[[str], WorkerJob], share: int
) -> None:
    found = timed(bench, job(LATER.format(share=share)))
    assert isinstance(found, NotTimed)
    assert found.status is ScoreStatus.INVALID


def test_an_input_appears_only_when_the_clock_runs(
    bench: DeviceBench, job: Callable[[str], WorkerJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in shared memory when the clock starts is what lay there before: the last interval's inputs."""
    with open_worker(job(HONEST)) as worker:
        open_on(bench, worker)
        real, before = bench._watch, []

        def watch(worker: Worker, flag: int, number: int, deadline: float) -> bool:
            seen = real(worker, flag, number, deadline)
            before.append(bytes(bench._in.memory[:4096]))  # type: ignore[attr-defined]
            return seen

        monkeypatch.setattr(bench, "_watch", watch)
        for _ in range(3):
            bench.interval(worker, [bench.workload.timed] * SLOTS, 5.0)
            assert bench.verify(0) is None
    armed, done = before[0::2], before[1::2]
    assert armed[0] == bytes(4096)
    assert armed[1:] == done[:-1]
    assert len({*armed, *done}) == 4


def test_a_flag_raised_too_early_does_not_stop_the_clock_before_the_result_is_there(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    body = """
import gc, time, torch
def twice(x, out):
    for thing in gc.get_objects():
        if type(thing).__name__ == "Server":
            thing._flags[2] = thing._flags[1]
    time.sleep(0.05)
    return torch.mul(x, 2, out=out)
"""
    found = check_submission(bench, job(body), PLAN, quiet)
    assert found is not None
    assert found.status is ScoreStatus.INVALID


def test_a_function_that_raises_between_the_flags_is_named(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    found = check_submission(bench, job("def twice(x):\n    return x + nothing\n"), PLAN, quiet)
    assert found is not None
    assert found.status is ScoreStatus.CRASHED
    assert "NameError" in found.message


def test_what_the_watch_says_ends_the_timing_as_the_machines_fault(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    found = time_submission(bench, job(HONEST), PLAN, random.Random(1), quiet, watch=lambda: "train.py came")
    assert isinstance(found, NotTimed)
    assert found.status is ScoreStatus.INFRASTRUCTURE
    assert found.message == "train.py came"


def test_a_machine_that_stays_unsteady_gives_no_score_but_what_was_measured(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    nothing_may_move = Steady(moved=0.0, appearing=0.0, uncertainty=0.0, again=2, pause=0.0)
    calibrations = intervals_of_known(bench, job(HONEST), nothing_may_move)
    assert isinstance(calibrations.found, NotTimed)
    assert calibrations.found.status is ScoreStatus.INFRASTRUCTURE
    assert calibrations.found.unsteady
    assert "score again" in calibrations.found.message
    assert calibrations.found.details["milliseconds"]["calls"]["median"] > 0
    assert calibrations.ran == 3 + (3 + 1) * PLAN.known


def test_a_machine_within_the_limits_is_calibrated_once_before_and_once_after(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    calibrations = intervals_of_known(bench, job(HONEST), Steady(math.inf, math.inf, math.inf))
    assert isinstance(calibrations.found, Timed)
    assert len(calibrations.found.rests) == 2
    assert calibrations.ran == 3 + 2 * PLAN.known


class Calibrations(NamedTuple):
    found: Timed | NotTimed
    ran: int


def intervals_of_known(bench: DeviceBench, job: WorkerJob, steady: Steady) -> Calibrations:
    """Time with these limits, and count the intervals of the known function: those that are not judged."""
    real, judged, ran = bench.verify, 0, 0
    interval = bench.interval

    def count_interval(worker: Worker, cases: Sequence[Case], seconds: float) -> Any:
        nonlocal ran
        ran += 1
        return interval(worker, cases, seconds)

    def count_verified(slot: int) -> Any:
        nonlocal judged
        judged += slot == 0
        return real(slot)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "interval", count_interval)
        patch.setattr(bench, "verify", count_verified)
        found = time_submission(bench, job, replace(PLAN, steady=steady), random.Random(1), quiet)
    return Calibrations(found, ran - judged)


def test_inputs_of_one_interval_tell_nothing_of_the_next(
    bench: DeviceBench, job: Callable[[str], WorkerJob]
) -> None:
    seeds = set()
    with open_worker(job(HONEST)) as worker:
        open_on(bench, worker)
        for _ in range(4):
            bench.interval(worker, [bench.workload.timed] * SLOTS, 5.0)
            seeds.add(bench._chance.initial_seed())
    assert len(seeds) == 4
