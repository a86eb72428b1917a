import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from environments.contract import CheckReport, Problem, ScoreReport, ScoreStatus
from sessions.clients.protocol import Refusal
from sessions.host.proctoring import Proctoring
from sessions.host.scoring import Answer
from sessions.record.events import (
    Breaks,
    Interrupted,
    InterruptionCause,
    ParticipantKind,
    PauseReason,
    ScoringTime,
    SessionPolicy,
    SnapshotReason,
    UsageReported,
)
from sessions.record.fold import fold
from sessions.record.log import read_log
from sessions.record.state import Phase
from sessions.snapshots import SnapshotStore
from tests.sessions.bench import ME, Bench
from tests.sessions.builders import MINUTE, valid

Make = Callable[..., Bench]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    benches: list[Bench] = []

    def build(*answers: Answer, **changes: object) -> Bench:
        benches.append(Bench(tmp_path, *answers, **changes))
        return benches[-1]

    yield build
    for bench in benches:
        await bench.die()
        if bench.record.log.exists():
            assert fold(read_log(bench.record.log).events) == bench.journal.state


async def test_the_starting_score_is_taken_before_the_clock_and_costs_no_time(make: Make) -> None:
    bench = make()
    await bench.ready()
    state = bench.journal.state
    assert state.phase is Phase.READY
    assert state.starting is not None
    assert state.starting.raw == 2.0
    assert state.elapsed_ms(bench.clock.now()) == 0


async def test_the_clock_needs_consent_and_the_brief_needs_the_clock(make: Make) -> None:
    bench = make()
    await bench.engine.recorded_first()
    with pytest.raises(Refusal, match="not been agreed"):
        bench.engine.start_clock(ME)
    bench.engine.consent("0" * 64, ME)
    with pytest.raises(Refusal, match="once the clock runs"):
        bench.engine.brief(ME)
    bench.engine.start_clock(ME)
    assert "Make the number small" in bench.engine.brief(ME)


async def test_a_score_is_of_its_snapshot_not_of_the_live_tree(make: Make) -> None:
    bench = make(valid(1.0), valid(1.5))
    await bench.running()
    bench.write("1.0")
    await bench.scored("first")
    bench.write("1.5")
    await bench.scored("second")
    rows = bench.journal.state.scores
    assert [row.note for row in rows] == ["starting solution", "first", "second"]
    assert len({row.commit for row in rows}) == 3
    assert bench.journal.state.best is not None
    assert bench.journal.state.best.number == 1


async def test_a_score_is_stamped_with_the_moment_of_the_call(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    bench.clock.advance(600)
    bench.scorer.hold = asyncio.Event()
    number = await bench.engine.score("", ME)
    bench.clock.advance(120)
    bench.scorer.hold.set()
    await bench.engine.recorded(number)
    assert bench.journal.state.scores[number].elapsed_ms == 600_000
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 720_000


async def test_excluded_scoring_stops_the_clock_until_the_score_is_there(make: Make) -> None:
    policy = SessionPolicy(budget_ms=60 * MINUTE, scoring_time=ScoringTime.EXCLUDED, snapshot_every_ms=None)
    bench = make(valid(1.0), policy=policy)
    await bench.running()
    bench.scorer.hold = asyncio.Event()
    number = await bench.engine.score("", ME)
    bench.clock.advance(300)
    with pytest.raises(Refusal, match="goes on by itself"):
        bench.engine.resume(ME)
    bench.scorer.hold.set()
    await bench.engine.recorded(number)
    await asyncio.sleep(0)
    assert bench.journal.state.phase is Phase.RUNNING
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 0


async def test_a_queued_or_running_score_can_be_cancelled(make: Make) -> None:
    bench = make(valid(1.0), valid(1.0))
    await bench.running()
    bench.scorer.hold = asyncio.Event()
    running = await bench.engine.score("", ME)
    queued = await bench.engine.score("", ME)
    bench.engine.cancel_score(queued)
    bench.engine.cancel_score(running)
    await bench.engine.recorded(queued)
    assert [row.status for row in bench.journal.state.scores[1:]] == [ScoreStatus.CANCELLED] * 2
    with pytest.raises(Refusal, match="not running or queued"):
        bench.engine.cancel_score(running)


async def test_a_scorer_that_dies_is_tried_once_more_and_then_is_our_fault(make: Make) -> None:
    died = Answer(fault="killed", died=True)
    bench = make(died, valid(1.0), died, died)
    await bench.running()
    await bench.scored()
    assert bench.journal.state.scores[1].raw == 1.0
    await bench.scored()
    row = bench.journal.state.scores[2]
    assert row.status is ScoreStatus.INFRASTRUCTURE
    assert "does not count against you" in row.message


async def test_a_score_in_flight_when_the_host_dies_is_taken_up_again(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    bench.scorer.hold = asyncio.Event()
    number = await bench.engine.score("", ME)
    await bench.die()
    bench.clock.advance(7)
    bench.scorer.hold = None
    bench.start()
    await bench.engine.recorded(number)
    assert bench.journal.state.scores[number].raw == 1.0
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 7_000


async def test_details_stay_out_of_the_log(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    await bench.scored()
    assert b"held out" not in bench.record.log.read_bytes()
    assert b"held out" in (bench.record.score_folder(1) / "report.json").read_bytes()


async def test_a_check_says_yes_or_why_not_and_is_never_a_score(make: Make) -> None:
    problem = Problem("aten.div is not allowed", "model.py:41")
    bench = make(Answer(check=CheckReport(problems=(problem,))))
    await bench.running()
    found = await bench.engine.check(ME)
    assert not found.accepted
    assert found.problems == (problem,)
    assert len(bench.journal.state.scores) == 1


async def test_a_second_pause_is_refused_and_nothing_resumes_by_itself(make: Make) -> None:
    bench = make()
    await bench.running()
    await bench.engine.pause(PauseReason.BREAK, "lunch", ME)
    with pytest.raises(Refusal, match="already stands"):
        await bench.engine.pause(PauseReason.BREAK, "", ME)
    await bench.die()
    bench.clock.advance(900)
    bench.start()
    assert bench.journal.state.phase is Phase.PAUSED
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 0


@pytest.mark.parametrize("breaks", [Breaks.PROCTOR, Breaks.NONE])
async def test_breaks_follow_the_policy(make: Make, breaks: Breaks) -> None:
    bench = make(policy=SessionPolicy(budget_ms=MINUTE, breaks=breaks, snapshot_every_ms=None))
    await bench.running()
    with pytest.raises(Refusal, match="cannot pause"):
        await bench.engine.pause(PauseReason.BREAK, "", ME)
    await bench.engine.pause(PauseReason.PROCTOR, "fire alarm", "proctor ann", proctor=True)
    with pytest.raises(Refusal, match="proctor ann stopped the clock"):
        bench.engine.resume(ME)
    bench.engine.resume("proctor ann", proctor=True)
    assert bench.journal.state.phase is Phase.RUNNING


async def test_warnings_come_once_each_and_the_deadline_ends_in_a_final_score(make: Make) -> None:
    bench = make(valid(1.0), policy=SessionPolicy(budget_ms=20 * MINUTE, snapshot_every_ms=None))
    await bench.running()
    for _ in range(20 * 12 + 12):
        bench.clock.advance(5)
        bench.engine.tick()
    assert bench.journal.state.warnings == (15, 5, 1)
    assert bench.journal.state.phase is Phase.FINISHING
    await bench.engine.ending.until_finished()
    final = bench.journal.state.scores[-1]
    assert final.raw is None or final.number == 0  # the tree never changed: the starting score is its score
    bench.engine.survey({"difficulty": "hard"}, ME)
    await bench.engine.ending.closed.wait()
    assert bench.journal.state.closed is not None
    assert bench.journal.state.closed.elapsed_ms == 20 * MINUTE


async def test_submit_scores_the_final_state_and_the_survey_closes(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    bench.clock.advance(60)
    bench.write("final")
    bench.engine.submit(ME)
    bench.write("after the end")
    await bench.engine.ending.until_finished()
    state = bench.journal.state
    assert state.scores[-1].raw == 1.0
    final = next(s for s in state.snapshots if s.reason is SnapshotReason.SUBMIT)
    assert state.scores[-1].commit == final.commit
    bench.engine.survey({}, ME)
    await bench.engine.ending.closed.wait()
    assert bench.journal.state.phase is Phase.CLOSED
    assert bench.record.closed()


async def test_a_survey_that_nobody_answers_keeps_no_session_open(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    bench.write("final")
    bench.engine.submit(ME)
    await bench.engine.ending.until_finished()
    bench.clock.advance(3000)
    bench.engine.tick()
    assert bench.journal.state.phase is Phase.FINISHING
    bench.clock.advance(700)
    bench.engine.tick()
    await bench.engine.ending.closed.wait()
    assert bench.journal.state.closed is not None
    assert bench.journal.state.closed.reason == "the survey was not answered"


async def test_an_agents_session_closes_without_a_survey(make: Make) -> None:
    bench = make(valid(1.0), participant_kind=ParticipantKind.AGENT)
    await bench.running()
    bench.write("final")
    bench.engine.submit("agent")
    await asyncio.wait_for(bench.engine.ending.closed.wait(), 10)
    assert bench.journal.state.closed is not None
    assert bench.journal.state.closed.raw == 1.0


async def test_a_host_that_dies_while_finishing_finishes_when_it_comes_back(make: Make) -> None:
    bench = make(valid(1.0), participant_kind=ParticipantKind.AGENT)
    await bench.running()
    bench.write("final")
    bench.engine.submit("agent")
    await bench.die()
    bench.start()
    await asyncio.wait_for(bench.engine.ending.closed.wait(), 10)
    assert bench.journal.state.closed is not None
    assert bench.journal.state.closed.raw == 1.0


async def test_a_snapshot_whose_host_died_before_its_event_is_not_written_over(make: Make) -> None:
    bench = make(valid(1.0))
    await bench.running()
    bench.write("seen by nobody")
    SnapshotStore(bench.record.folder).take(bench.work, 1, "an orphan")
    bench.write("scored")
    await bench.scored()
    row = bench.journal.state.scores[-1]
    assert (row.raw, row.snapshot) == (1.0, 2)


async def test_credit_gives_time_back_with_who_and_why(make: Make) -> None:
    bench = make()
    await bench.running()
    bench.clock.advance(600)
    Proctoring(bench.journal, bench.engine.ending).credit(5 * MINUTE, "network was down", "proctor ann")
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 5 * MINUTE
    assert bench.journal.state.credits[0][1] == "proctor ann"
    with pytest.raises(Refusal, match="reason"):
        Proctoring(bench.journal, bench.engine.ending).credit(1000, " ", "proctor ann")


async def test_a_suspended_machine_is_an_interruption_that_counts_by_policy(make: Make) -> None:
    bench = make()
    await bench.running()
    bench.engine.tick()
    bench.clock.advance(20 * 60)
    bench.engine.tick()
    interruptions = [body for _, body in bench.journal.state.interruptions]
    assert interruptions == [Interrupted(InterruptionCause.SUSPENDED, 20 * MINUTE, True)]
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 20 * MINUTE


async def test_a_reboot_is_credited_by_default(make: Make) -> None:
    bench = make()
    await bench.running()
    bench.clock.advance(60)
    bench.engine.tick()
    await bench.die()
    bench.clock.reboot(seconds_away=600)
    bench.start()
    bench.clock.advance(30)
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == 90_000


async def test_a_failed_snapshot_is_an_event_and_its_score_is_our_fault(make: Make) -> None:
    bench = make()
    await bench.running()

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    bench.engine.snapshotter.store.take = broken  # type: ignore[method-assign]
    await bench.scored()
    assert bench.journal.state.snapshots[-1].status == "failed"
    assert bench.journal.state.scores[-1].status is ScoreStatus.INFRASTRUCTURE
    assert "No space left" in bench.journal.state.scores[-1].message


async def test_a_scorer_may_not_report_a_number_that_is_none() -> None:
    with pytest.raises(ValueError, match="finite"):
        ScoreReport.valid(float("nan"), "")


async def test_usage_that_no_reader_could_add_up_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.running()
    for figure in (-1, 2**63):
        with pytest.raises(Refusal, match="every figure must lie"):
            bench.engine.usage(UsageReported("model", figure, 0), ME)
    await bench.die()


async def test_a_scoring_that_breaks_on_our_side_does_not_end_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, valid(1.5))
    await bench.running()
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotStore, "checkout", _no_room)
        await bench.scored("while the disk is full")
    await bench.scored("afterwards")
    statuses = [row.status for row in bench.engine.state.scores[1:]]
    assert statuses == [ScoreStatus.INFRASTRUCTURE, ScoreStatus.VALID]
    await bench.die()


def _no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")
