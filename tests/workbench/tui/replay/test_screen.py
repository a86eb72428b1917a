"""The replay screen: its cursor, its keys, and that nothing can be sent from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sessions.clients.protocol import PARTICIPANT_METHODS, PROCTOR_METHODS, Refusal
from sessions.record.events import NoteWritten
from tests.workbench.cli.conftest import Story
from workbench.review.moments import Film
from workbench.tui.replay.screen import EventsPage, GoTo, ReplayApp, ReplayKeysPage, ReplayScreen
from workbench.tui.replay.source import ReplaySource, any_score

Told = Callable[..., Story]
HARMLESS = {"hello", "status", "brief", "history", "diff", "changed", "details", "events"}


def _source(story: Told) -> ReplaySource:
    told = story().begin()
    for number in range(1, 6):
        told.score(number, 2.0 - number / 10, note=f"[bold]try {number}[/]").note("[/] \x1b[2J")
    told.pause(40).note("back").close()
    return ReplaySource(told.record, Film.read(told.record.log))


def _app(source: ReplaySource) -> ReplayApp:
    return ReplayApp(source, ascii_only=False)


def _screen(app: ReplayApp) -> ReplayScreen:
    screen = app.screen
    assert isinstance(screen, ReplayScreen)
    return screen


async def test_the_screen_shows_what_was_known_at_the_cursor(story: Told) -> None:
    app = _app(source := _source(story))
    source.go(source.film.after(len(source.film.events) - 1))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert app.view is not None
        assert app.view.state.best is not None
        assert app.view.state.best.raw == 1.5
        await pilot.press("left_square_bracket", "left_square_bracket")
        await pilot.pause()
        assert app.view.state.best.raw == pytest.approx(1.6)
        assert len([row for row in app.view.state.scores if not row.pending]) == 5


async def test_keys_step_through_scores_and_events(story: Told) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=(120, 40)) as pilot:
        numbers = []
        for _ in range(3):
            await pilot.press("right_square_bracket")
            numbers.append(getattr(source.moment.event.body, "number", "starting"))
        assert numbers == ["starting", 1, 2]
        before = source.moment.index
        await pilot.press("full_stop")
        assert source.moment.index == before + 1
        await pilot.press("comma")
        assert source.moment.index == before


async def test_typing_a_time_seeks_to_it(story: Told) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon")
        await pilot.pause()
        assert isinstance(app.screen, GoTo)
        await pilot.press(*"0:02:30", "enter")
        await pilot.pause()
        assert source.moment.elapsed_ms == 150_000
        assert "used 0:02:30" in _screen(app).timeline.text()


async def test_a_time_that_is_none_is_refused_in_words(story: Told) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon", *"soon", "enter")
        await pilot.pause()
        assert isinstance(app.screen, GoTo)
        assert source.moment.index == 0


async def test_the_list_of_events_goes_where_one_is_chosen(story: Told) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert isinstance(app.screen, EventsPage)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert source.moment.index == 2


async def test_playing_reaches_the_end_and_cuts_idle_time_short(story: Told) -> None:
    source = _source(story)
    source.speed = 3600
    stopped = asyncio.Event()
    source.moved = lambda: None if source.playing else stopped.set()
    await source.start()
    source.toggle()
    await asyncio.wait_for(stopped.wait(), 20)
    assert source.moment.position == source.film.length
    await source.close()


async def test_a_long_event_is_cut_in_the_heading_and_not_left_out(story: Told) -> None:
    told = story().begin().note("many words " * 40).close()
    app = _app(source := ReplaySource(told.record, Film.read(told.record.log)))
    noted = next(n for n, event in enumerate(source.film.events) if isinstance(event.body, NoteWritten))
    source.go(source.film.after(noted))
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        assert "many words" in _screen(app).timeline.text().splitlines()[0]


async def test_the_question_mark_lists_the_keys_of_the_replay(story: Told) -> None:
    app = _app(_source(story))
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, ReplayKeysPage)


async def test_space_plays_and_stops(story: Told) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space")
        assert source.playing
        await pilot.press("space")
        assert not source.playing


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (40, 10)])
async def test_outside_text_is_literal_at_every_size(story: Told, size: tuple[int, int]) -> None:
    app = _app(source := _source(story))
    async with app.run_test(size=size) as pilot:
        while source.step(1, any_score):
            await pilot.pause()
        text = _screen(app).timeline.text()
        assert "\x1b" not in text


@pytest.mark.parametrize("method", sorted({*PARTICIPANT_METHODS, *PROCTOR_METHODS} - HARMLESS))
async def test_nothing_can_be_asked_of_a_record_that_would_act(story: Told, method: str) -> None:
    source = _source(story)
    before = source.record.log.read_bytes()
    with pytest.raises(Refusal):
        await source.request(method)
    assert source.record.log.read_bytes() == before


async def test_the_history_in_replay_is_that_of_the_cursor(story: Told) -> None:
    source = _source(story)
    source.seek(150_000)
    rows = (await source.request("history"))["rows"]
    assert all(row["elapsed_ms"] <= 150_000 for row in rows)
    assert 0 < len(rows) < 6
