from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from environments.contract import Counting, Direction, ScoreStatus
from sessions.record.clock import ManualClock
from sessions.record.events import (
    SESSION_KINDS,
    ClockPaused,
    ClockResumed,
    ClockStarted,
    DeadlineReached,
    Heartbeat,
    Interrupted,
    InterruptionCause,
    NoteWritten,
    PauseReason,
    ScoreRecorded,
    ScoreRequested,
    SessionPolicy,
    StartingScoreRecorded,
    Submitted,
    TimeCredited,
)
from sessions.record.fold import _STEPS, EventImpossible, fold
from sessions.record.log import Journal, read_log
from sessions.record.state import Phase
from tests.sessions.builders import MINUTE, journal_at, opened, specification


def begun(folder: Path, clock: ManualClock, budget_ms: int = 60 * MINUTE, **changes: object) -> Journal:
    journal = journal_at(folder, clock)
    journal.append(opened(policy=SessionPolicy(budget_ms=budget_ms), **changes))
    journal.append(ScoreRequested(0))
    journal.append(StartingScoreRecorded(0, "c0", 2.0, ScoreStatus.VALID, "", 1.0))
    journal.append(ClockStarted(), "participant")
    return journal


def scored(journal: Journal, raw: float | None, status: ScoreStatus = ScoreStatus.VALID) -> None:
    number = len(journal.state.scores)
    journal.append(ScoreRequested(number))
    journal.append(ScoreRecorded(number, number, f"c{number}", raw, status, "", 1.0))


def test_every_kind_of_event_has_its_step() -> None:
    assert set(_STEPS) == set(SESSION_KINDS)


def test_the_clock_runs_stands_while_paused_and_goes_on(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = begun(tmp_path, clock)
    clock.advance(60)
    journal.append(ClockPaused(PauseReason.BREAK))
    clock.advance(300)
    assert journal.state.elapsed_ms(clock.now()) == MINUTE
    journal.append(ClockResumed())
    clock.advance(30)
    assert journal.state.elapsed_ms(clock.now()) == 90_000
    assert journal.state.paused_ms(clock.now()) == 300_000


def test_only_one_pause_is_open_at_a_time(tmp_path: Path) -> None:
    journal = begun(tmp_path, ManualClock())
    journal.append(ClockPaused(PauseReason.BREAK))
    with pytest.raises(EventImpossible):
        journal.append(ClockPaused(PauseReason.PROCTOR))


def test_elapsed_stays_between_nothing_and_the_budget(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = begun(tmp_path, clock, budget_ms=10 * MINUTE)
    journal.append(TimeCredited(5 * MINUTE, "machine was slow"), "proctor ann")
    assert journal.state.elapsed_ms(clock.now()) == 0
    clock.advance(3600)
    assert journal.state.elapsed_ms(clock.now()) == 10 * MINUTE
    assert journal.state.remaining_ms(clock.now()) == 0


def test_the_best_valid_score_counts_in_the_environments_direction(tmp_path: Path) -> None:
    journal = begun(tmp_path, ManualClock())
    for raw in (1.5, 1.2, 1.8):
        scored(journal, raw)
    scored(journal, None, ScoreStatus.INVALID)
    assert journal.state.counted is journal.state.best
    assert journal.state.best is not None
    assert (journal.state.best.number, journal.state.best.raw, journal.state.best.normalised) == (2, 1.2, 0.8)
    assert journal.state.last_valid is not None
    assert journal.state.last_valid.number == 3


def test_the_last_valid_score_counts_where_the_environment_says_so(tmp_path: Path) -> None:
    environment = specification(counting=Counting.LAST, direction=Direction.HIGHER)
    journal = begun(tmp_path, ManualClock(), environment=environment)
    for raw in (5.0, 3.0):
        scored(journal, raw)
    assert journal.state.counted is not None
    assert journal.state.counted.raw == 3.0
    assert journal.state.best is not None
    assert journal.state.best.raw == 5.0


def test_a_score_worse_than_the_start_counts_as_nothing(tmp_path: Path) -> None:
    journal = begun(tmp_path, ManualClock())
    scored(journal, 7.0)
    assert journal.state.scores[1].normalised == 0.0
    assert journal.state.scores[1].change == 5.0


@pytest.mark.parametrize("counted", [True, False])
def test_an_interruption_counts_by_policy_and_never_twice(tmp_path: Path, counted: bool) -> None:
    clock = ManualClock()
    journal = begun(tmp_path, clock)
    clock.advance(100)
    journal.append(Heartbeat())
    clock.advance(40)
    journal.append(Interrupted(InterruptionCause.HOST_STOPPED, 40_000, counted))
    clock.advance(10)
    assert journal.state.elapsed_ms(clock.now()) == 110_000 + (40_000 if counted else 0)


def test_an_interruption_of_a_paused_session_moves_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = begun(tmp_path, clock)
    clock.advance(5)
    journal.append(ClockPaused(PauseReason.BREAK))
    clock.advance(500)
    journal.append(Interrupted(InterruptionCause.HOST_STOPPED, 500_000, True))
    assert journal.state.phase is Phase.PAUSED
    assert journal.state.elapsed_ms(clock.now()) == 5_000


def test_what_happened_after_the_deadline_takes_no_time(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = begun(tmp_path, clock, budget_ms=MINUTE)
    clock.advance(61)
    journal.append(DeadlineReached())
    clock.advance(100)
    assert journal.state.phase is Phase.FINISHING
    assert journal.state.elapsed_ms(clock.now()) == MINUTE
    with pytest.raises(EventImpossible):
        journal.append(ClockPaused(PauseReason.BREAK))


class SessionMachine(RuleBasedStateMachine):
    """Anything that may happen in any order, with time passing between."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.journal = begun(Path(self.folder.name), self.clock)
        self.elapsed = 0
        self.best = 2.0

    def teardown(self) -> None:
        self.journal.close()
        self.folder.cleanup()

    @rule(seconds=st.floats(0, 2000))
    def time_passes(self, seconds: float) -> None:
        standing = not self.journal.state.clock.running
        before = self.journal.state.elapsed_ms(self.clock.now())
        self.clock.advance(seconds)
        if standing:
            assert self.journal.state.elapsed_ms(self.clock.now()) == before

    @rule(seconds=st.floats(-20_000, 20_000))
    def the_wall_clock_is_stepped(self, seconds: float) -> None:
        before = self.journal.state.elapsed_ms(self.clock.now())
        self.clock.step_wall(seconds)
        assert self.journal.state.elapsed_ms(self.clock.now()) == before

    @rule(seconds=st.floats(-100, 5000), counted=st.booleans(), reboot=st.booleans())
    def the_host_dies_and_comes_back(self, seconds: float, counted: bool, reboot: bool) -> None:
        if self.journal.state.phase is Phase.CLOSED:
            return
        last = self.journal.state.last
        if reboot:
            self.clock.reboot(seconds)
        else:
            self.clock.advance(abs(seconds))
        path, clock = self.journal._path, self.clock
        self.journal.close()
        self.journal = Journal(path, clock)
        lost = clock.now().milliseconds_since(last)
        self.journal.append(Interrupted(InterruptionCause.HOST_STOPPED, lost, counted))
        if reboot or not counted:  # what was shown live but never logged may be taken back
            self.elapsed = min(self.elapsed, self.journal.state.elapsed_ms(clock.now()))

    @precondition(lambda self: self.journal.state.phase is Phase.RUNNING)
    @rule()
    def pause(self) -> None:
        self.journal.append(ClockPaused(PauseReason.BREAK))

    @precondition(lambda self: self.journal.state.phase is Phase.PAUSED)
    @rule()
    def resume(self) -> None:
        self.journal.append(ClockResumed())

    @precondition(lambda self: self.journal.state.phase in (Phase.RUNNING, Phase.FINISHING))
    @rule(raw=st.floats(-5, 5) | st.none())
    def score(self, raw: float | None) -> None:
        scored(self.journal, raw, ScoreStatus.INVALID if raw is None else ScoreStatus.VALID)

    @precondition(lambda self: self.journal.state.phase in (Phase.RUNNING, Phase.PAUSED))
    @rule()
    def submit(self) -> None:
        self.journal.append(Submitted())

    @rule()
    def note(self) -> None:
        self.journal.append(NoteWritten("x"))

    @invariant()
    def time_never_runs_backwards_or_over(self) -> None:
        elapsed = self.journal.state.elapsed_ms(self.clock.now())
        assert 0 <= elapsed <= self.journal.state.clock.budget_ms
        assert elapsed >= self.elapsed
        self.elapsed = elapsed

    @invariant()
    def the_best_score_never_worsens(self) -> None:
        best = self.journal.state.best
        assert best is not None
        assert best.raw is not None
        assert best.raw <= self.best
        self.best = best.raw

    @invariant()
    def the_log_folds_to_the_live_state(self) -> None:
        assert fold(read_log(self.journal._path).events) == self.journal.state


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
