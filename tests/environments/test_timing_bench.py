"""The timing kit with a workload of its own: two float inputs, a tolerance, and workers that do all sorts of things."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from environments.contract import Progress, ScoreStatus
from environments.triton_cumsum.timing import (
    Block,
    Case,
    NotTimed,
    Plan,
    Shapes,
    Timed,
    check_submission,
    time_submission,
    worker_job,
)
from environments.triton_cumsum.timing.cases import Fault
from environments.triton_cumsum.timing.host_bench import HostBench
from environments.triton_cumsum.timing.outcome import FASTER_THAN_COPY
from environments.worker import Answered, Mount, WorkerJob, WorkerLimits, WorkerUnavailable, open_worker

ENTRY = """
from environments.triton_cumsum.timing.serve import Server

def load(request):
    return request.load("scale.py").scale

answer = Server(load).answer
"""
PLAN = Plan(seconds=1.0, call_seconds=5.0, open_seconds=10.0, least=3, most=4, warm_ups=(1, 1), in_turn=True)
HONEST = "def scale(x, factor):\n    return x * factor[0]\n"


class Scaling:
    """float64 [rows, 50] times a factor [1]."""

    inputs = (Block("float64", 100_000), Block("float64", 1))
    output = Block("float64", 100_000)
    tolerance = (1e-9, 1e-12)

    def __init__(self) -> None:
        self.timed = self.case(2000)
        self.checks = (self.case(0), self.case(1), self.case(7))

    def case(self, rows: int) -> Case:
        def draw(chance: np.random.Generator) -> list[Any]:
            return [chance.random((rows, 50)), chance.random(1)]

        return Case(f"{rows} rows", Shapes(((rows, 50), (1,)), (rows, 50)), draw)

    def expected(self, inputs: Sequence[Any]) -> Any:
        return inputs[0] * inputs[1][0]


@pytest.fixture
def bench() -> Iterator[HostBench]:
    made = HostBench(Scaling(), slots=2)
    yield made
    made.close()


@pytest.fixture
def job(bench: HostBench, tmp_path: Path) -> Callable[[str], WorkerJob]:
    def make(source: str) -> WorkerJob:
        entry, root = tmp_path / "entry.py", tmp_path / "root"
        entry.write_text(ENTRY)
        root.mkdir(exist_ok=True)
        (root / "scale.py").write_text(source)
        return worker_job(entry, bench, WorkerLimits(seconds=10, memory_gb=1.0), mounts={"root": Mount(root)})

    return make


def timed(bench: HostBench, job: WorkerJob) -> Timed | NotTimed:
    return time_submission(bench, job, PLAN, random.Random(1), quiet)


def quiet(_progress: Progress) -> None:
    """Take progress and show nothing."""


def test_an_honest_function_is_timed_and_all_its_results_compared(
    bench: HostBench, job: Callable[[str], WorkerJob]
) -> None:
    found = timed(bench, job(HONEST))
    assert isinstance(found, Timed), found
    assert found.checked == 3 + 2 * (found.calls.count + found.warm_ups)
    assert found.calls.count >= 3
    assert 0 < found.quiet <= found.calls.most
    assert found.overhead.median > 0
    assert found.answered.confinement.survivors == 0
    assert set(found.details()) >= {"milliseconds", "series", "warm_ups", "checked_calls", "flags", "stages"}


def test_rounding_within_the_tolerance_passes(bench: HostBench, job: Callable[[str], WorkerJob]) -> None:
    assert (
        check_submission(bench, job(HONEST.replace("factor[0]", "factor[0] * (1 + 1e-11)")), PLAN, quiet)
        is None
    )


@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        ("def scale(x, factor):\n    return x * 1.001\n", ScoreStatus.INVALID, "1 rows: element 0 is"),
        ("def scale(x, factor):\n    return (x * factor[0])[:, :1]\n", ScoreStatus.INVALID, "shape [0, 50]"),
        ("def scale(x, factor):\n    return (x * factor[0]).tolist()\n", ScoreStatus.INVALID, "found list"),
        ("def scale(x, factor):\n    raise OSError('no disk')\n", ScoreStatus.CRASHED, "OSError: no disk"),
        ("import nothing_of_that_name\n", ScoreStatus.CRASHED, "nothing_of_that_name"),
        ("def other(x):\n    pass\n", ScoreStatus.CRASHED, "scale"),
        ("def scale(x, factor):\n    x *= factor[0]\n    return x\n", ScoreStatus.CRASHED, "read-only"),
    ],
)
def test_a_mistake_is_named(
    bench: HostBench, job: Callable[[str], WorkerJob], source: str, status: ScoreStatus, says: str
) -> None:
    found = check_submission(bench, job(source), PLAN, quiet)
    assert found is not None
    assert found.status is status
    assert says in found.message


def test_a_result_that_comes_after_the_clock_stopped_is_late(
    bench: HostBench, job: Callable[[str], WorkerJob]
) -> None:
    source = (
        "import threading, time\n"
        "def scale(x, factor, out):\n"
        "    def later():\n"
        "        time.sleep(0.2)\n"
        "        out[...] = x * factor[0]\n"
        "    threading.Thread(target=later).start()\n"
        "    return out\n"
    )
    found = check_submission(bench, job(source), PLAN, quiet)
    assert found is not None
    assert found.status is ScoreStatus.INVALID


def test_the_positions_read_when_the_clock_stops_are_judged_by_themselves(
    bench: HostBench, job: Callable[[str], WorkerJob]
) -> None:
    with open_worker(job(HONEST)) as worker:
        for do in ("open", "load"):
            body = {"do": do, "layout": bench.layout.as_json(), "device": "cpu"}
            assert isinstance(worker.ask(body, {}), Answered)
        bench.interval(worker, [bench.workload.timed], 5.0)
        assert bench.verify(0) is None
        _, seen = bench._sampled[0]
        seen[0] += 1.0
        mismatch = bench.verify(0)
        assert mismatch is not None
        assert mismatch.fault is Fault.LATE
        assert "still being written" in mismatch.sentence()


def test_every_call_has_a_fresh_input_and_a_fresh_poison(
    bench: HostBench, job: Callable[[str], WorkerJob]
) -> None:
    nothing = "def scale(x, factor, out):\n    return out\n"
    with open_worker(job(nothing)) as worker:
        for do in ("open", "load"):
            worker.ask({"do": do, "layout": bench.layout.as_json(), "device": "cpu"}, {})
        inputs, poisons = [], []
        for _ in range(6):
            bench.interval(worker, [bench.workload.timed] * 2, 5.0)
            for slot in range(2):
                inputs.append(bench._own[slot][1][0].tobytes())
                poisons.append(bench._found[slot].tobytes()[:1])
                assert bench.verify(slot) is not None
    assert len(set(inputs)) == 12
    assert len(set(poisons)) > 3


def test_a_frozen_worker_computes_nothing(bench: HostBench, job: Callable[[str], WorkerJob]) -> None:
    counting = (
        "import threading\n"
        "count = [0]\n"
        "def on():\n"
        "    while True: count[0] += 1\n"
        "threading.Thread(target=on, daemon=True).start()\n"
        "def scale(x, factor, out):\n"
        "    out[...] = count[0]\n"
        "    return out\n"
    )
    with open_worker(job(counting)) as worker:
        for do in ("open", "load"):
            worker.ask({"do": do, "layout": bench.layout.as_json(), "device": "cpu"}, {})
        for _ in range(10):
            worker.freeze()
            assert busy_children() == set()
            used = used_by_children()
            sum(range(2_000_000))
            assert used_by_children() == used
            worker.thaw()


CHAIN = """
def hide(out):
    while True:
        out[0, 0] = os.getpid()
        if os.fork():
            os._exit(0)
"""
FIRST_THREAD_ENDED = """
def count(out):
    for number in itertools.count():
        out[0, 0] = number

def hide(out):
    threading.Thread(target=count, args=(out,)).start()
    libc.syscall(60, 0)
"""
HIDING = """
import ctypes, itertools, os, threading
libc = ctypes.CDLL(None)
begun = []
{how}
def scale(x, factor, out):
    for _ in range(0 if begun else 4):
        if os.fork() == 0:
            os.setsid()
            hide(out)
    begun.append(1)
    return out
"""


@pytest.mark.parametrize("how", [CHAIN, FIRST_THREAD_ENDED], ids=["chain", "first-thread-ended"])
def test_processes_that_look_dead_are_frozen_too(
    bench: HostBench, job: Callable[[str], WorkerJob], how: str
) -> None:
    """Each of a chain is gone before its state is read; a process whose first thread has ended looks like a corpse."""
    with open_worker(job(HIDING.format(how=how))) as worker:
        for do in ("open", "load"):
            worker.ask({"do": do, "layout": bench.layout.as_json(), "device": "cpu"}, {})
        bench.interval(worker, [bench.workload.timed], 5.0)
        mark = bench._output(0, bench.workload.timed)
        for _ in range(15):
            if failed := worker.freeze():
                assert failed.status is ScoreStatus.INVALID
                return
            before = mark[0, 0]
            sum(range(1_000_000))
            assert mark[0, 0] == before
            worker.thaw()


def busy_children() -> set[str]:
    """Return the states of the worker's processes in which one could run."""
    children = psutil.Process().children(recursive=True)
    return {child.status() for child in children} & {psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP}


def used_by_children() -> float:
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True))


def test_a_result_faster_than_a_copy_is_marked(
    bench: HostBench, job: Callable[[str], WorkerJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environments.triton_cumsum.timing.measure._COPY_MARGIN", 1e6)
    found = timed(bench, job(HONEST))
    assert isinstance(found, Timed)
    assert found.flags == (FASTER_THAN_COPY,)


def test_a_known_function_that_fails_is_our_fault(
    bench: HostBench, job: Callable[[str], WorkerJob], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(ENTRY.replace('request.load("scale.py").scale', "1 / 0"))
    monkeypatch.setattr("environments.triton_cumsum.timing.measure.KNOWN", broken)
    with pytest.raises(WorkerUnavailable, match="ZeroDivisionError"):
        timed(bench, job(HONEST))
