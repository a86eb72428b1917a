"""Commands that show a session without touching it: replay and watch."""

from __future__ import annotations

import sys
from typing import Any

import click

from workbench.cli.command import Command
from workbench.cli.exits import Exit
from workbench.cli.proctoring import DurationType
from workbench.cli.reach import meant, session_argument
from workbench.cli.reading import json_option, print_json
from workbench.ink.figures import duration
from workbench.ink.text import literal, one_line

theme_option = click.option("--theme", metavar="NAME", help="Else $REBENCH_THEME, else dark.")
_RECENT = 12


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench replay s-7f3a9c",
        "rebench-workbench replay s-7f3a9c --at 1:33:00              # the screen, opened at that moment",
        "rebench-workbench replay s-7f3a9c --at 1:33:00 --text       # what was known then, on standard output",
        "rebench-workbench replay s-7f3a9c --at 93m --terminal       # what the shells showed",
        "rebench-workbench replay s-7f3a9c --event 412 --json",
    ),
)
@session_argument
@click.option("--at", "at_ms", type=DurationType(), help="Session time, such as 1:33:00 or 93m.")
@click.option("--event", "seq", type=click.IntRange(min=0), help="Right after the event of that number.")
@click.option("--text", is_flag=True, help="Print what was known at that moment.")
@click.option("--terminal", is_flag=True, help="Print what the recorded terminals showed at that moment.")
@theme_option
@json_option
def replay(session: str | None, at_ms: int | None, seq: int | None, text: bool, terminal: bool, theme: str | None,
           as_json: bool) -> Exit:  # fmt: skip
    """Go through a session's record, moment by moment."""
    from workbench.review.moments import Film

    record = meant(session)
    film = Film.read(record.log)
    if seq is not None:
        moment = film.after(seq)
    elif at_ms is not None:
        moment = film.at_elapsed(at_ms)
    else:
        moment = film.after(len(film.events) - 1 if text or terminal or as_json else 0)
    if as_json:
        print_json(_as_json(film, moment))
        return Exit.OK
    if terminal:
        _print_terminals(record, moment)
        return Exit.OK
    if text or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _print(film, moment)
        return Exit.OK
    from workbench.cli.screen import run_replay

    return Exit(run_replay(record, film, moment, theme=theme))


def _as_json(film: Any, moment: Any) -> dict[str, Any]:
    from sessions.record.events import as_plain
    from sessions.record.summary import history, summarise

    return {
        "position_ms": moment.position,
        "length_ms": film.length,
        "seq": moment.event.seq,
        "at": moment.now.at,
        "status": summarise(moment.state, moment.now, proctor=True),
        "rows": history(moment.state, proctor=True),
        "events": [as_plain(event) for event in _recent(film, moment.index)],
    }


def _recent(film: Any, index: int) -> list[Any]:
    from sessions.record.events import Heartbeat

    happened = [event for event in film.events[: index + 1] if not isinstance(event.body, Heartbeat)]
    return happened[-_RECENT:]


def _print(film: Any, moment: Any) -> None:
    from sessions.record.summary import history, summarise
    from workbench.cli.panel import history_table, panel

    standing = summarise(moment.state, moment.now, proctor=True)
    click.echo(panel(standing | {"scores_hidden": False}))
    click.echo(f"\n{history_table(history(moment.state, proctor=True), standing)}\n")
    for event in _recent(film, moment.index):
        click.echo(event_line(event))


def _print_terminals(record: Any, moment: Any) -> None:
    from workbench.review.terminals import Terminals, recordings_at

    terminals = Terminals(record)
    for number in recordings_at(moment):
        screen = terminals.screen(number, moment)
        remark = f", {one_line(screen.remark)}" if screen.remark else ""
        click.secho(f"recording {number}, {screen.cols}x{screen.rows}{remark}", dim=True, err=True)
        click.echo(screen.text())


def event_line(event: Any) -> str:
    """Return one event as a line for a terminal."""
    from workbench.ink.events import describe

    when = click.style(f"{duration(event.elapsed):>8}", dim=True)
    return f"{event.seq:5} {when}  {literal(event.by):12} {one_line(describe(event))}"


@click.command(
    cls=Command,
    examples=("rebench-workbench watch s-7f3a9c", "rebench-workbench watch s-7f3a9c --text | grep score"),
)
@session_argument
@click.option("--text", is_flag=True, help="Print each event as it happens, instead of the screen.")
@theme_option
def watch(session: str | None, text: bool, theme: str | None) -> Exit:
    """Watch a live session without being able to touch it."""
    record = meant(session)
    if not text and sys.stdin.isatty() and sys.stdout.isatty():
        from workbench.cli.screen import run_watch

        return Exit(run_watch(record, theme=theme))
    from sessions.record.events import Heartbeat
    from workbench.review.tail import follow_lines

    for event in follow_lines(record):
        if not isinstance(event.body, Heartbeat):
            click.echo(event_line(event))
            sys.stdout.flush()
    return Exit.OK
