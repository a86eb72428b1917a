"""Failure 19: elapsed was lost, or ran backwards, when the machine slept, was set, or came back from a boot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sessions.audit.verify import verify
from sessions.record.events import InterruptionCause, Interruptions, SessionPolicy
from sessions.record.state import Phase
from tests.sessions.bench import Bench
from tests.sessions.builders import MINUTE


@pytest.fixture(params=list(Interruptions))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    policy = SessionPolicy(budget_ms=60 * MINUTE, interruptions=request.param, snapshot_every_ms=None)
    bench = Bench(tmp_path, policy=policy)
    await bench.running()
    bench.clock.advance(12)
    bench.engine.tick()  # a heartbeat: from here the log knows
    yield bench
    assert 0 <= bench.journal.state.elapsed_ms(bench.clock.now()) <= 60 * MINUTE
    await bench.die()
    report = verify(bench.record)
    assert report.sound, report.problems


def credited(bench: Bench, *, by_default: bool = False) -> bool:
    policy = bench.journal.state.opened.policy.interruptions
    return policy is Interruptions.CREDITED or (policy is Interruptions.AUTO and by_default)


def causes(bench: Bench) -> list[InterruptionCause]:
    return [body.cause for _, body in bench.journal.state.interruptions]


async def test_a_machine_that_slept_for_twenty_minutes(bench: Bench) -> None:
    before = bench.journal.state.elapsed_ms(bench.clock.now())
    bench.clock.advance(20 * 60)
    bench.engine.tick()
    assert causes(bench) == [InterruptionCause.SUSPENDED]
    spent = bench.journal.state.elapsed_ms(bench.clock.now()) - before
    assert spent == (0 if credited(bench) else 20 * MINUTE)


@pytest.mark.parametrize("hours", [-3, 3])
async def test_a_wall_clock_that_was_set_moves_nothing(bench: Bench, hours: int) -> None:
    before = bench.journal.state.elapsed_ms(bench.clock.now())
    bench.clock.step_wall(hours * 3600)
    bench.engine.tick()
    assert bench.journal.state.elapsed_ms(bench.clock.now()) == before
    assert causes(bench) == []


async def test_a_host_that_was_away_for_seven_minutes(bench: Bench) -> None:
    before = bench.journal.state.elapsed_ms(bench.clock.now())
    await bench.die()
    bench.clock.advance(7 * 60)
    bench.start()
    assert causes(bench) == [InterruptionCause.HOST_STOPPED]
    spent = bench.journal.state.elapsed_ms(bench.clock.now()) - before
    assert spent == (0 if credited(bench) else 7 * MINUTE)


@pytest.mark.parametrize("minutes_away", [10, -200])
async def test_a_reboot_whatever_the_wall_says_afterwards(bench: Bench, minutes_away: int) -> None:
    before = bench.journal.state.elapsed_ms(bench.clock.now())
    await bench.die()
    bench.clock.reboot(minutes_away * 60)
    bench.start()
    assert causes(bench) == [InterruptionCause.REBOOT]
    spent = bench.journal.state.elapsed_ms(bench.clock.now()) - before
    assert spent == (0 if credited(bench, by_default=True) else max(0, minutes_away) * MINUTE)


async def test_a_session_whose_budget_ran_out_while_nobody_looked_ends_at_the_budget(bench: Bench) -> None:
    await bench.die()
    bench.clock.advance(9 * 3600)
    bench.start()
    bench.engine.tick()
    await bench.engine.ending.until_finished()
    if credited(bench):
        assert bench.journal.state.phase is Phase.RUNNING
    else:
        assert bench.journal.state.phase is Phase.FINISHING
        assert bench.journal.state.elapsed_ms(bench.clock.now()) == 60 * MINUTE
