"""A record as a film: any moment, seeking, stepping."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from sessions.record.clock import ManualClock
from sessions.record.events import (
    ClockStarted,
    ConsentGiven,
    Heartbeat,
    ScoreRecorded,
    TimeCredited,
)
from sessions.record.fold import fold
from sessions.record.log import read_log
from tests.workbench.cli.conftest import Story
from workbench.review.moments import Film

Told = Callable[..., Story]
MINUTE = 60_000


def test_the_state_at_every_event_is_the_fold_up_to_it(story: Told) -> None:
    told = story().begin()
    for number in range(1, 40):
        told.score(number, 2.0 - number / 100).note(f"note {number}")
    film = Film.read(told.record.log)
    events = read_log(told.record.log).events
    for index in (0, 1, 63, 64, 65, 127, len(events) - 1):
        assert film.after(index).state == fold(events[: index + 1])


def test_elapsed_time_runs_between_two_events_and_stands_in_a_pause(story: Told) -> None:
    told = story().begin().note("a").pause(12).note("b")
    film = Film.read(told.record.log)
    paused = next(n for n, event in enumerate(film.events) if event.kind == "clock_paused")
    start = film.times[paused]
    assert film.at(start - 10_000).elapsed_ms == film.after(paused).elapsed_ms - 10_000
    assert film.at(start + 6 * MINUTE).elapsed_ms == film.after(paused).elapsed_ms


def test_seeking_by_session_time_finds_that_very_moment(story: Told) -> None:
    told = story().begin().score(1, 1.5).pause(30).score(2, 1.4)
    film = Film.read(told.record.log)
    for wanted in (0, 1_000, 45_000, 61_500, 90_000):
        assert film.at_elapsed(wanted).elapsed_ms == wanted
    assert film.at_elapsed(10**9).index == len(film.events) - 1


def test_seeking_still_works_after_time_was_given_back(story: Told) -> None:
    told = story().begin().note("a").note("b")
    told.tell(TimeCredited(20_000, "fire alarm"), "proctor kim")
    told.note("c").note("d")
    film = Film.read(told.record.log)
    assert film.at_elapsed(50_000).elapsed_ms == 50_000
    assert film.at_elapsed(75_000).state.notes[-1].text in {"b", "c"}


def test_positions_outside_the_record_are_its_ends(story: Told) -> None:
    film = Film.read(story().begin().record.log)
    assert film.at(-5).index == 0
    assert film.at(10**12).position == film.length


def test_events_of_the_same_millisecond_are_each_reachable(story: Told) -> None:
    told = story()
    told.tell(ConsentGiven("0"), after=0)
    told.tell(ConsentGiven("0"), after=0)
    film = Film.read(told.record.log)
    assert [film.after(n).event.seq for n in range(3)] == [0, 1, 2]


def test_the_next_happening_is_never_a_heartbeat(story: Told) -> None:
    told = story().begin()
    told.tell(Heartbeat(), after=10)
    told.tell(Heartbeat(), after=10)
    told.note("at last")
    film = Film.read(told.record.log)
    started = next(n for n, event in enumerate(film.events) if isinstance(event.body, ClockStarted))
    brief = film.next_happening(film.times[started])
    assert brief is not None
    assert film.next_happening(brief) == film.times[-1]
    assert film.next(0, lambda body: isinstance(body, ScoreRecorded)) is None


def test_a_long_record_seeks_in_a_millisecond(tmp_path: Path, story: Told) -> None:
    told = story().begin()
    clock = told.clock
    assert isinstance(clock, ManualClock)
    for number in range(1, 3001):
        told.tell(Heartbeat(), after=9.6)
        if number % 50 == 0:
            told.note(f"note {number}")
    film = Film.read(told.record.log)
    began = time.process_time()
    for minute in range(0, 480, 5):
        film.at_elapsed(minute * MINUTE)
    assert (time.process_time() - began) / 96 < 0.01
