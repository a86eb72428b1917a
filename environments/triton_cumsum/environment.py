"""The environment: hands out the starter, checks results, and times `prefix_sum`."""

from __future__ import annotations

import ast
import math
import random
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import (
    AssetsMissing,
    CheckReport,
    PrepareRequest,
    Problem,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.triton_cumsum.settings import (
    KEYS,
    CumsumSettings,
    Keys,
    Statistic,
    decode_settings,
)

if TYPE_CHECKING:
    from environments.triton_cumsum.timing import Bench, NotTimed, Plan, Timed
    from environments.triton_cumsum.timing.gpu_state import GpuReader
    from environments.worker import WorkerJob

HERE = Path(__file__).parent
STARTER = HERE / "starter"
SOLUTION, FUNCTION = "solution.py", "prefix_sum"
_RANDOM_LENGTHS = 3
_SPECIAL_LENGTH = 70_001
_MOST_SOURCE = 1 << 20
_CHECK_LENGTH = 1_000_003
_DISTURBED = 1.2
"""Median over quietest stretch from which the participant is told."""
_AGAIN = 0.25
"""Share of the time for a score within which timing that was disturbed is done once more, from the beginning."""
_DISBELIEVED = 1.1
"""Our figure over that of the submission's process from which the participant is told: it may hint at a disturbance."""


class TritonCumsum:
    """A conditional running sum, timed."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Leave the sealed lengths beside the protected assets; inputs are drawn fresh at every call."""
        keys = KEYS.open(request.passphrase)
        request.assets.protected.mkdir(parents=True, exist_ok=True)
        KEYS.leave(keys, request.assets.protected)
        report(Progress(stage="unsealing the lengths", fraction=1.0))

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return the slow solution and a local bench."""
        device = "gpu" if decode_settings(request.profile.settings).on_gpu else "cpu"
        files = {name: STARTER / device / name for name in (SOLUTION, "bench.py")}
        if absent := [str(path) for path in files.values() if not path.is_file()]:
            raise AssetsMissing(f"{', '.join(absent)} missing: the installation is incomplete")
        return files

    def check(self, submission: Submission) -> CheckReport:
        """Run the function on small inputs of every kind in the worker and compare; measures nothing."""
        from environments.triton_cumsum.timing import check_submission

        if problem := _read_problem(submission.root):
            return CheckReport(problems=(problem,))
        settings = decode_settings(submission.profile.settings)
        bench = make_bench(settings, KEYS.read(submission.assets.protected), submission.seed, _CHECK_LENGTH)
        try:
            plan = make_plan(settings)
            reason = check_submission(bench, _job(bench, submission, settings), plan, lambda _progress: None)
        finally:
            bench.close()
        if reason is not None:
            return CheckReport(problems=(Problem(what=reason.message, where=reason.where),))
        return CheckReport(notes=("results were right at every length and kind of values tried",))

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Time the function on fresh inputs; every result is compared with the right one."""
        from environments.triton_cumsum.timing import NotTimed, Timed, time_submission
        from environments.triton_cumsum.timing.bystanders import Bystanders
        from environments.triton_cumsum.timing.gpu_state import summary

        if problem := _read_problem(submission.root):
            return ScoreReport.rejected(ScoreStatus.INVALID, problem.what, where=problem.where)
        settings, limit = (
            decode_settings(submission.profile.settings),
            submission.profile.limits.score_seconds,
        )
        reader = make_reader(settings)
        others = Bystanders(reader)
        if busy := others.why_busy():
            return ScoreReport.rejected(ScoreStatus.INFRASTRUCTURE, busy, seed=submission.seed)
        bench = make_bench(settings, KEYS.read(submission.assets.protected), submission.seed, settings.length)
        try:
            job, chance = _job(bench, submission, settings), random.Random(submission.seed)
            before = others.last

            def once() -> Timed | NotTimed:
                return time_submission(
                    bench, job, make_plan(settings), chance, report, watch=others.why_disturbed
                )

            attempts, began, timed = 1, time.monotonic(), once()
            took = time.monotonic() - began
            if isinstance(timed, NotTimed) and timed.unsteady and took < _AGAIN * limit:
                attempts, timed = 2, once()
            state = summary(before, reader.read())
        finally:
            bench.close()
        if isinstance(timed, Timed) and (busy := others.why_busy()):
            return ScoreReport.rejected(ScoreStatus.INFRASTRUCTURE, busy, seed=submission.seed)
        if isinstance(timed, NotTimed):
            return _not_timed(timed, submission.seed)
        told = {"gpu": {**state, "looks": others.looks}} if state else {}
        return _report(timed, settings, submission.seed, {**told, "attempts": attempts})


def make_reader(settings: CumsumSettings) -> GpuReader:
    """Return what tells who uses the GPU; on the host, where sharing is usual, it tells nothing."""
    from environments.triton_cumsum.timing.gpu_state import NvmlReader, ScriptedReader

    return NvmlReader(settings.device) if settings.on_gpu else ScriptedReader([None])


def make_bench(settings: CumsumSettings, keys: Keys, seed: int, length: int) -> Bench:
    """Return the bench with hidden lengths, some of them drawn for this call alone."""
    chance = random.Random(seed)
    lengths = (*keys.lengths, *(chance.randrange(3, 200_000) for _ in range(_RANDOM_LENGTHS)))
    if settings.on_gpu:
        from environments.triton_cumsum.device_workload import DeviceWorkload
        from environments.triton_cumsum.timing.device_bench import DeviceBench

        return DeviceBench(DeviceWorkload(length, lengths, _SPECIAL_LENGTH), settings.slots, settings.device)
    from environments.triton_cumsum.host_workload import HostWorkload
    from environments.triton_cumsum.timing.host_bench import HostBench

    return HostBench(HostWorkload(length, lengths, _SPECIAL_LENGTH), settings.slots)


def make_plan(settings: CumsumSettings) -> Plan:
    from environments.triton_cumsum.timing import Plan, Steady

    limits = settings.steady
    return Plan(
        seconds=settings.timing_seconds,
        call_seconds=settings.call_seconds,
        open_seconds=settings.open_seconds,
        least=settings.least,
        most=settings.most,
        known=settings.known,
        relative_error=settings.relative_error,
        in_turn=not settings.on_gpu,
        steady=Steady(limits.moved, limits.appearing, limits.uncertainty) if limits else None,
    )


def _job(bench: Bench, submission: Submission, settings: CumsumSettings) -> WorkerJob:
    from environments.triton_cumsum.timing import worker_job
    from environments.worker import Mount, WorkerLimits

    limits = WorkerLimits.of(submission.profile.limits, threads=settings.threads, answer_mb=1.0)
    return worker_job(
        HERE / "call.py", bench, limits,
        mounts={"root": Mount(submission.root)}, masks=(submission.assets.protected,),
    )  # fmt: skip


def _source(path: Path) -> bytes:
    """Return a participant's file; what it is a link to may be a device that never ends."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no plain file")
    with path.open("rb") as file:
        content = file.read(_MOST_SOURCE + 1)
    if len(content) > _MOST_SOURCE:
        raise OSError(f"it has more than {_MOST_SOURCE:,} bytes")
    return content


def _read_problem(root: Path) -> Problem | None:
    """Return why solution.py cannot be what is wanted, as far as reading it tells."""
    path = root / SOLUTION
    try:
        tree = ast.parse(_source(path), filename=SOLUTION)
    except FileNotFoundError:
        return Problem(what=f"{SOLUTION} is missing", hint=f"it must define {FUNCTION}(x)")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return Problem(
            what=f"{SOLUTION} cannot be read: {error}", where=f"{SOLUTION}:{line}" if line else None
        )
    if FUNCTION not in {name for node in ast.walk(tree) for name in _names(node)}:
        return Problem(
            what=f"{SOLUTION} defines no {FUNCTION}", hint=f"define {FUNCTION}(x) at the top level"
        )
    return None


def _names(node: ast.AST) -> list[str]:
    """Return the names that a statement could define."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.alias):
        return [node.asname or node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _not_timed(reason: NotTimed, seed: int) -> ScoreReport:
    message = f"{reason.message} ({reason.where})" if reason.where else reason.message
    return ScoreReport.rejected(reason.status, message, **{**reason.details, "log": reason.log, "seed": seed})


def _report(timed: Timed, settings: CumsumSettings, seed: int, told: Mapping[str, Any]) -> ScoreReport:
    milliseconds = timed.quiet if settings.statistic is Statistic.QUIETEST else timed.calls.median
    raw = math.log(milliseconds)
    how = "quietest stretch" if settings.statistic is Statistic.QUIETEST else "median"
    message = (
        f"{milliseconds:.4g} ms ({how} of {timed.calls.count} timings on fresh inputs, median {timed.calls.median:.4g} ms "
        f"+- {100 * timed.uncertainty:.2g} %; a plain copy takes {timed.quiet_copy:.4g} ms); "
        f"score ln(milliseconds) = {raw:.4f}"
    )
    if settings.statistic is Statistic.QUIETEST and timed.calls.median > _DISTURBED * timed.quiet:
        message += (
            ". Other work on this machine disturbed the timing; a score in a quiet moment may be better"
        )
    if settings.on_gpu and timed.said and timed.said.median * _DISBELIEVED < milliseconds:
        message += (
            f". The function's own process counted {timed.said.median:.4g} ms by events on its stream; if nothing runs "
            "on others, something disturbed the timing, and a score in a quiet moment may be better"
        )
    if timed.flags:
        message += f". Marked for review: {', '.join(timed.flags)}"
    details: dict[str, Any] = {
        **timed.details(),
        "statistic": settings.statistic.value,
        "confinement": msgspec.to_builtins(timed.answered.confinement),
        "log": timed.answered.log,
        "seed": seed,
        **told,
    }
    return ScoreReport.valid(raw, message, **details)


environment = TritonCumsum()
