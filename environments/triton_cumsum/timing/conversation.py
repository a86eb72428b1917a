"""Speaks with one timing worker: opening, importing, intervals whose results are all compared, the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from environments.contract import ScoreStatus
from environments.triton_cumsum.timing.bench import Bench, Interval, request_to
from environments.triton_cumsum.timing.cases import Case
from environments.triton_cumsum.timing.outcome import NotTimed, Plan
from environments.worker import Answered, Failed, WorkerUnavailable
from environments.worker.run import Worker

_OPEN_SECONDS = 120.0


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
        """Keep the worker still meanwhile.

        Raises:
            Refused: it cannot be stopped, or woke itself.
        """
        if failed := self._worker.freeze():
            raise Refused(NotTimed.of(failed))
        try:
            yield
            if failed := self._worker.stayed_frozen():
                raise Refused(NotTimed.of(failed))
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
