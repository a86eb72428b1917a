"""Times a submission: checks, warm-ups, timed intervals, and a known function for what the harness itself costs."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import replace

from environments.contract import Progress, ReportProgress, ScoreStatus
from environments.triton_cumsum.timing.bench import KNOWN, Bench, Interval, worker_job
from environments.triton_cumsum.timing.cases import Case
from environments.triton_cumsum.timing.conversation import Conversation, Refused
from environments.triton_cumsum.timing.cost import HarnessCost, per_call
from environments.triton_cumsum.timing.outcome import (
    COST_MOVED,
    FASTER_THAN_COPY,
    REVEAL_TOOK_LONGER,
    NotTimed,
    Plan,
    Timed,
)
from environments.triton_cumsum.timing.spread import Spread, quietest, ratio
from environments.worker import Answered, WorkerJob, WorkerUnavailable, open_worker

_FEWEST = 3
"""Timed intervals without which there is no score, however slow the submission."""
_KNOWN_WARM_UPS = 3
_COPY_MARGIN = 0.97
"""A result below this share of a copy's time is flagged: each input read once and each output written once takes a copy."""
_WATCH_SECONDS = 1.0
"""Between looks at who else uses the device."""
_MOVED = 0.04
"""Difference of the calibrations before and after from which a score is flagged."""

Watch = Callable[[], str | None]
"""Says why what was timed just now cannot be trusted; None when nothing was amiss."""


def check_submission(bench: Bench, job: WorkerJob, plan: Plan, report: ReportProgress) -> NotTimed | None:
    """Run the workload's checks alone; None means that all results were right.

    Raises:
        WorkerUnavailable: not the submission's fault.
    """
    with open_worker(job, report) as worker:
        talk = Conversation(bench, worker, plan)
        talk.begin_to_open()
        talk.finish_opening()
        try:
            talk.load()
            _run_checks(bench, talk, report)
            talk.conclude()
        except Refused as refused:
            return refused.reason
    return None


def time_submission(
    bench: Bench,
    job: WorkerJob,
    plan: Plan,
    chance: random.Random,
    report: ReportProgress,
    *,
    watch: Watch = lambda: None,
) -> Timed | NotTimed:
    """Time `job`'s function on the bench; `watch` is asked between intervals and when all is over.

    Raises:
        WorkerUnavailable: a worker could not be started, or our own known function failed: not the submission's fault.
    """
    report(Progress(stage="starting", fraction=None))
    known_job = worker_job(KNOWN, bench, job.limits)
    with open_worker(known_job) as known_worker, open_worker(job, report) as worker:
        known, talk = Conversation(bench, known_worker, plan), Conversation(bench, worker, plan)
        for each in (known, talk):
            each.begin_to_open()
        for each in (known, talk):
            each.finish_opening()
        _warm(bench, known)
        try:
            return measure(bench, plan, chance, report, known, talk, _Vigil(watch))
        except Refused as refused:
            return refused.reason


def measure(
    bench: Bench,
    plan: Plan,
    chance: random.Random,
    report: ReportProgress,
    known: Conversation,
    talk: Conversation,
    vigil: _Vigil,
) -> Timed:
    """Check, warm up and time one submission; `known` runs in turn with it, or before and after."""
    cases = [bench.workload.timed] * bench.layout.slots
    timed: list[Interval] = []
    marks = [time.monotonic()]
    report(Progress(stage="calibrating", fraction=None))
    copies = [] if plan.in_turn else _calm(known, cases, plan)
    warm_ups = chance.randint(*plan.warm_ups)
    report(Progress(stage="importing the submission", fraction=None))
    marks.append(time.monotonic())
    talk.load()
    marks.append(time.monotonic())
    _run_checks(bench, talk, report)
    marks.append(time.monotonic())
    surprises = {chance.randrange(plan.least + warm_ups): case for case in _full_size(bench)}
    for number in itertools.count():
        if number in surprises:
            talk.run([surprises[number], *cases[1:]])
        beside = _in_turn(talk, known, cases) if plan.in_turn else []
        interval = talk.run(cases)
        vigil.look()
        if number < warm_ups:
            continue
        timed.append(interval)
        copies += beside
        passed = time.monotonic() - marks[-1]
        report(Progress(stage="timing", fraction=min(1.0, passed / plan.seconds)))
        if _enough(timed, copies, passed, plan):
            break
    vigil.look(now=True)
    marks.append(time.monotonic())
    answered = talk.conclude()
    after = [] if plan.in_turn else _alone(known, cases, plan)
    vigil.look(now=True)
    marks.append(time.monotonic())
    names = ("calibrating", "importing", "checking", "timing", "ending")
    stages = {n: round(b - a, 2) for n, (a, b) in zip(names, itertools.pairwise(marks), strict=True)}
    summary = _summary(timed, copies, after, warm_ups, talk.checked, stages, answered, plan)
    if after and _moved(copies, after):
        summary = replace(summary, flags=(*summary.flags, COST_MOVED))
    if after and plan.steady and (why := plan.steady.why_not(copies, timed, after)):
        raise Refused(NotTimed.of_unsteady(why, summary))
    return summary


class _Vigil:
    """Asks now and then whether anything disturbs what is timed."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._next = watch, time.monotonic() + _WATCH_SECONDS

    def look(self, *, now: bool = False) -> None:
        """Look if it is time to.

        Raises:
            Refused: as the machine's fault.
        """
        if not now and time.monotonic() < self._next:
            return
        if why := self._watch():
            raise Refused(NotTimed(ScoreStatus.INFRASTRUCTURE, why))
        self._next = time.monotonic() + _WATCH_SECONDS


def _enough(timed: list[Interval], copies: list[Interval], passed: float, plan: Plan) -> bool:
    if len(timed) >= plan.most or (passed >= plan.seconds and len(timed) >= _FEWEST):
        return True
    if len(timed) < plan.least:
        return False
    cost = _cost(copies, plan)
    return Spread.of([cost.net(i) for i in timed]).error <= plan.relative_error


def _cost(copies: list[Interval], plan: Plan) -> HarnessCost:
    cost = HarnessCost.of(copies, in_turn=plan.in_turn)
    if cost is None:
        raise WorkerUnavailable(
            "the known function reported no time of its own; the harness cannot be calibrated"
        )
    return cost


def _moved(before: list[Interval], after: list[Interval]) -> bool:
    """Whether the harness's cost is another after the submission ran: it may have heated or slowed the device."""
    costs = [HarnessCost.of(known, in_turn=False) for known in (before, after)]
    first, last = (cost.whole.median if cost else math.nan for cost in costs)
    return not abs(last / first - 1) <= _MOVED


def _in_turn(talk: Conversation, known: Conversation, cases: list[Case]) -> list[Interval]:
    """Run the known function once while the submission stands still."""
    with talk.frozen():
        return [known.run(cases, judge=False)]


def _alone(known: Conversation, cases: list[Case], plan: Plan) -> list[Interval]:
    """Run the known function while no process of the submission's lives, so that none can make it seem dear."""
    return [known.run(cases, judge=False) for _ in range(plan.known)]


def _calm(known: Conversation, cases: list[Case], plan: Plan) -> list[Interval]:
    """Calibrate, and anew while that disagrees with itself: most disturbances pass."""
    found, steady = _alone(known, cases, plan), plan.steady
    for _ in range(steady.again if steady else 0):
        if steady is None or steady.calm(found):
            break
        time.sleep(steady.pause)
        found = _alone(known, cases, plan)
    return found


def _summary(
    timed: list[Interval],
    before: list[Interval],
    after: list[Interval],
    warm_ups: int,
    checked: int,
    stages: dict[str, float],
    answered: Answered,
    plan: Plan,
) -> Timed:
    copies = [*before, *after]
    cost = _cost(copies, plan)
    rests = tuple(_cost(known, plan).rest.median for known in (before, after)) if after else ()
    inner = [per_call(i, i.inner) for i in copies if i.inner is not None]
    series = [cost.net(i) for i in timed]
    copy = Spread.of(inner)
    said = [per_call(i, i.inner) for i in timed if i.inner is not None]
    calls = Spread.of(series)
    limit = _COPY_MARGIN * (copy.least if plan.in_turn else copy.median)
    flags = {
        FASTER_THAN_COPY: calls.median < limit,
        REVEAL_TOOK_LONGER: cost.exceeded_by(timed),
    }
    return Timed(
        calls=calls,
        measured=Spread.of([per_call(i, i.seconds) for i in timed]),
        quiet=quietest(series, plan.block),
        overhead=cost.whole,
        reveal=cost.reveal,
        own_reveal=Spread.of([per_call(i, i.reveal) for i in timed]),
        rests=rests,
        uncertainty=cost.uncertainty(calls),
        copy=copy,
        quiet_copy=quietest(inner, plan.block),
        said=Spread.of(said) if said else None,
        against_copy=ratio(series, inner) if plan.in_turn else None,
        warm_ups=warm_ups,
        checked=checked,
        flags=tuple(flag for flag, raised in flags.items() if raised),
        stages=stages,
        answered=answered,
        series=tuple(series),
        copies=tuple(inner),
    )


def _run_checks(bench: Bench, talk: Conversation, report: ReportProgress) -> None:
    cases = bench.workload.checks
    for number, case in enumerate(cases):
        report(Progress(stage=f"checking results: {case.name}", fraction=number / len(cases)))
        talk.run([case])


def _full_size(bench: Bench) -> list[Case]:
    """Return the checks that look like timed calls; one each comes among the timed ones."""
    return [case for case in bench.workload.checks if case.shapes == bench.workload.timed.shapes]


def _warm(bench: Bench, known: Conversation) -> None:
    """Run our own function until it runs as usual.

    Raises:
        WorkerUnavailable: it failed, so nothing can be timed here.
    """
    try:
        known.load()
        for _ in range(_KNOWN_WARM_UPS):
            known.run([bench.workload.timed] * bench.layout.slots, judge=False)
    except Refused as refused:
        raise WorkerUnavailable(
            f"our own known function failed: {refused.reason.message}\n{refused.reason.log}"
        ) from refused
