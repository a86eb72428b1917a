"""Times a submission: checks, warm-ups, timed intervals, and a known function for what the harness itself costs."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Iterator

from environments.contract import Progress, ReportProgress, ScoreStatus
from environments.kit.timing.bench import KNOWN, Bench, Interval, request_to, worker_job
from environments.kit.timing.cases import Case
from environments.kit.timing.outcome import FASTER_THAN_COPY, NotTimed, Plan, Timed
from environments.kit.timing.spread import Spread, quietest, ratio
from environments.worker import Answered, Failed, WorkerJob, WorkerUnavailable, open_worker
from environments.worker.run import Worker

_FEWEST = 3
"""Timed intervals without which there is no score, however slow the submission."""
_OPEN_SECONDS = 120.0
_KNOWN_WARM_UPS = 3
_COPY_MARGIN = 0.97
"""A result below this share of a copy's time is flagged: each input read once and each output written once takes a copy."""


class Refused(Exception):
    """Carries a `NotTimed` out of the loop."""

    def __init__(self, reason: NotTimed) -> None:
        super().__init__(reason.message)
        self.reason = reason


class Conversation:
    """One worker that serves a bench."""

    def __init__(self, bench: Bench, worker: Worker, plan: Plan) -> None:
        self._bench, self._worker, self._plan = bench, worker, plan
        self.checked = 0
        self.last: Answered | None = None

    def begin_to_open(self) -> None:
        """Let the worker map the memory, without waiting; only our own code runs in it so far.

        Raises:
            WorkerUnavailable: it is gone.
        """
        if failed := self._worker.post(request_to("open", self._bench), {}, _OPEN_SECONDS):
            raise WorkerUnavailable(f"a timing worker is gone: {failed.message}\n{failed.log}")

    def finish_opening(self) -> None:
        """Wait until it has mapped the memory.

        Raises:
            WorkerUnavailable: our own code failed in it.
        """
        outcome = self._worker.collect()
        if isinstance(outcome, Failed):
            raise WorkerUnavailable(
                f"a timing worker could not map its memory: {outcome.message}\n{outcome.log}"
            )

    def load(self) -> None:
        """Let it import the function.

        Raises:
            Refused: with what the participant's file raised.
        """
        outcome = self._worker.ask(request_to("load", self._bench), {}, self._plan.open_seconds)
        if isinstance(outcome, Failed):
            raise Refused(NotTimed.of(outcome))
        self.last = outcome

    def run(self, cases: list[Case], *, judge: bool = True) -> Interval:
        """Run one interval and compare all its results.

        Raises:
            Refused.
        """
        interval = self._bench.interval(self._worker, cases, self._plan.call_seconds)
        if isinstance(interval, Failed):
            raise Refused(NotTimed.of(interval))
        self.last = interval.answered
        if interval.refused is not None:
            message = f"{cases[0].name}: the result cannot be used: {interval.refused}"
            raise Refused(NotTimed(ScoreStatus.INVALID, message, log=interval.answered.log))
        if interval.late:
            message = "the submission's process did not see the scorer's start in time"
            raise Refused(NotTimed(ScoreStatus.TIMEOUT, message, log=interval.answered.log))
        for slot in range(len(cases)) if judge else ():
            if mismatch := self._bench.verify(slot):
                raise Refused(NotTimed(ScoreStatus.INVALID, mismatch.sentence(), log=interval.answered.log))
            self.checked += 1
        return interval

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep the worker still meanwhile."""
        self._worker.freeze()
        try:
            yield
        finally:
            self._worker.thaw()

    def conclude(self) -> Answered:
        """End the worker and make sure that its last answer was its last word.

        Raises:
            Refused.
        """
        assert self.last is not None
        outcome = self._worker.concluded(self.last)
        if isinstance(outcome, Failed):
            raise Refused(NotTimed.of(outcome))
        assert isinstance(outcome, Answered)
        return outcome


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
    bench: Bench, job: WorkerJob, plan: Plan, chance: random.Random, report: ReportProgress
) -> Timed | NotTimed:
    """Time `job`'s function on the bench.

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
            return _measure(bench, plan, chance, report, known, talk)
        except Refused as refused:
            return refused.reason


def _measure(
    bench: Bench,
    plan: Plan,
    chance: random.Random,
    report: ReportProgress,
    known: Conversation,
    talk: Conversation,
) -> Timed:
    """Check, warm up and time one submission; `known` runs in turn with it, or before and after."""
    cases = [bench.workload.timed] * bench.layout.slots
    timed: list[Interval] = []
    marks = [time.monotonic()]
    report(Progress(stage="calibrating", fraction=None))
    copies = [] if plan.in_turn else _alone(known, cases, plan)
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
        if number < warm_ups:
            continue
        timed.append(interval)
        copies += beside
        passed = time.monotonic() - marks[-1]
        report(Progress(stage="timing", fraction=min(1.0, passed / plan.seconds)))
        if _enough(timed, passed, plan):
            break
    marks.append(time.monotonic())
    answered = talk.conclude()
    if not plan.in_turn:
        copies += _alone(known, cases, plan)
    marks.append(time.monotonic())
    names = ("calibrating", "importing", "checking", "timing", "ending")
    stages = {n: round(b - a, 2) for n, (a, b) in zip(names, itertools.pairwise(marks), strict=True)}
    return _summary(timed, copies, warm_ups, talk.checked, stages, answered, plan)


def _enough(timed: list[Interval], passed: float, plan: Plan) -> bool:
    if len(timed) >= plan.most or (passed >= plan.seconds and len(timed) >= _FEWEST):
        return True
    if len(timed) < plan.least:
        return False
    return Spread.of([i.seconds / i.calls for i in timed]).error <= plan.relative_error


def _in_turn(talk: Conversation, known: Conversation, cases: list[Case]) -> list[Interval]:
    """Run the known function once while the submission stands still."""
    with talk.frozen():
        return [known.run(cases, judge=False)]


def _alone(known: Conversation, cases: list[Case], plan: Plan) -> list[Interval]:
    """Run the known function while no process of the submission's lives, so that none can make it seem dear."""
    return [known.run(cases, judge=False) for _ in range(plan.known)]


def _summary(
    timed: list[Interval],
    copies: list[Interval],
    warm_ups: int,
    checked: int,
    stages: dict[str, float],
    answered: Answered,
    plan: Plan,
) -> Timed:
    costs = [1000 * o / i.calls for i in copies if (o := i.overhead) is not None]
    inner = [1000 * i.inner / i.calls for i in copies if i.inner is not None]
    if not costs:
        raise WorkerUnavailable(
            "the known function reported no time of its own; the harness cannot be calibrated"
        )
    overhead = Spread.of(costs)
    measured = [1000 * i.seconds / i.calls for i in timed]
    # Where others use the processors, the harness's middle cost is partly theirs; its least is surely its own.
    taken_off = overhead.least if plan.in_turn else overhead.median
    series = [ms - taken_off if ms > taken_off else ms for ms in measured]
    copy = Spread.of(inner)
    said = [1000 * i.inner / i.calls for i in timed if i.inner is not None]
    calls = Spread.of(series)
    limit = _COPY_MARGIN * (copy.least if plan.in_turn else copy.median)
    return Timed(
        calls=calls,
        measured=Spread.of(measured),
        quiet=quietest(series, plan.block),
        overhead=overhead,
        copy=copy,
        quiet_copy=quietest(inner, plan.block),
        said=Spread.of(said) if said else None,
        against_copy=ratio(series, inner) if plan.in_turn else None,
        warm_ups=warm_ups,
        checked=checked,
        flags=(FASTER_THAN_COPY,) if calls.median < limit else (),
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
