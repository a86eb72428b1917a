"""Commands of someone at work: check, score, note, pause, resume, submit, survey, shell."""

from __future__ import annotations

import sys
from typing import Any

import click

from workbench.cli.asking import require_yes
from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import ask, dial, is_closed, meant, session_option
from workbench.cli.reading import json_option, print_json
from workbench.cli.text import fold
from workbench.ink.figures import duration, figure
from workbench.ink.text import literal, one_line

_REASONS = ("break", "infrastructure", "proctor", "lost-contact", "crash", "api")


@click.command(cls=Command, examples=("rebench-workbench check && rebench-workbench score",))
@session_option
@json_option
def check(session: str | None, as_json: bool) -> Exit:
    """Say whether the work would be accepted; no score."""
    report = ask(meant(session), "check")
    if as_json:
        print_json(report)
    else:
        _print_check(report)
    if report["fault"]:
        return Exit.INFRASTRUCTURE
    return Exit.OK if report["accepted"] else Exit.NOT_ACCEPTED


def _print_check(report: dict[str, Any]) -> None:
    took = f"({report['seconds']:.1f} s)"
    if report["fault"]:
        click.secho(f"The check itself broke: {literal(report['fault'])} {took}", fg="magenta", err=True)
        click.echo("That is our fault, not the work's; `rebench-workbench doctor` may know more.", err=True)
    elif report["accepted"]:
        click.echo(f"{click.style('accepted', fg='green', bold=True)} {took}")
    else:
        count = len(report["problems"])
        click.echo(
            f"{click.style('not accepted', fg='yellow', bold=True)}: {count} problem{'s' * (count != 1)} {took}"
        )
    for problem in report["problems"]:
        where = f"{literal(problem['where'])}: " if problem.get("where") else ""
        click.echo(fold(f"  {click.style(where, bold=True)}{literal(problem['what'])}", 4))
        if problem.get("hint"):
            click.echo(fold(f"    {click.style(literal(problem['hint']), dim=True)}", 4))


@click.command(
    cls=Command,
    examples=(
        'rebench-workbench score -m "wider relu mixer"',
        "rebench-workbench score --no-wait          # goes on in the background; `history` has the result",
        "rebench-workbench score --cancel 5",
    ),
)
@session_option
@click.option(
    "--message", "-m", "note", default="", metavar="NOTE", help="A note that stands beside the score."
)
@click.option("--wait/--no-wait", default=True, help="Wait for the score, or only ask for it.")
@click.option("--cancel", type=int, metavar="NUMBER", help="Cancel the scoring of that number instead.")
@json_option
def score(session: str | None, note: str, wait: bool, cancel: int | None, as_json: bool) -> Exit:
    """Snapshot the work and score the snapshot."""
    from workbench.cli.scoring import follow_score

    record = meant(session)
    if cancel is not None:
        ask(record, "cancel_score", number=cancel)
        click.echo(f"score #{cancel} is cancelled", err=True)
        return Exit.OK
    row = follow_score(record, note) if wait else ask(record, "score", note=note, wait=False)
    if as_json:
        print_json(row)
    elif row["status"] is None:
        click.echo(f"#{row['number']} is being scored; `rebench-workbench history` shows the result")
    else:
        _print_score(row)
    # An invalid submission is an answer, not a failure of this command.
    return Exit.INFRASTRUCTURE if row["status"] == "infrastructure" else Exit.OK


def _print_score(row: dict[str, Any]) -> None:
    colour = {"valid": "green", "infrastructure": "magenta"}.get(row["status"], "yellow")
    parts = [f"#{row['number']}", click.style(row["status"], fg=colour, bold=True)]
    if row["raw"] is not None:
        parts.append(click.style(figure(row["raw"]), bold=True))
    if row["normalised"] is not None:
        parts.append(f"normalised {row['normalised']:.3f}")
    if row["change"] is not None:
        parts.append(f"change {figure(row['change'], sign=True)}")
    click.echo("  ".join(parts))
    if row["message"]:
        click.echo(fold(literal(row["message"])))
    if row["commit"]:
        about = f"snapshot {row['commit'][:12]}, called at {duration(row['elapsed_ms'])}, took {row['seconds'] or 0:.1f} s"
        click.secho(about, dim=True, err=True)


@click.command(
    cls=Command,
    examples=(
        'rebench-workbench note "lr 3e-4 diverges; back to 1e-4"',
        "git diff | rebench-workbench note -",
    ),
)
@session_option
@click.argument("text", nargs=-1, required=True)
def note(session: str | None, text: tuple[str, ...]) -> None:
    """Write a note into the record; `-` reads it from standard input."""
    words = sys.stdin.read() if text == ("-",) else " ".join(text)
    ask(meant(session), "note", text=words)
    click.echo("noted", err=True)


@click.command(
    cls=Command,
    examples=("rebench-workbench pause", 'rebench-workbench pause --reason break -m "lunch"'),
)
@session_option
@click.option(
    "--reason", type=click.Choice(_REASONS), default="break", show_default=True, help="Why the clock stops."
)
@click.option("--message", "-m", "note", default="", metavar="NOTE", help="A word about it.")
def pause(session: str | None, reason: str, note: str) -> None:
    """Stop the clock, with a reason."""
    record = meant(session)
    with dial(record) as client:
        client.request("pause", reason=reason, note=note)
        left = client.request("status")["remaining_ms"]
    click.echo(f"paused with {duration(left)} left; `rebench-workbench resume` goes on", err=True)


@click.command(cls=Command, examples=("rebench-workbench resume",))
@session_option
@click.option(
    "--yes", is_flag=True, help="Agree to the rules without being asked, where the clock has not begun."
)
def resume(session: str | None, yes: bool) -> None:
    """Let the clock run on; starts it where it has not begun."""
    record = meant(session)
    with dial(record) as client:
        if client.request("status")["phase"] in {"opened", "ready"}:
            from workbench.cli.consent import begin_session

            begin_session(client, yes=yes)
        else:
            client.request("resume")
        left = client.request("status")["remaining_ms"]
    click.echo(f"running, {duration(left)} left", err=True)


@click.command(cls=Command, examples=("rebench-workbench submit", "rebench-workbench submit --yes"))
@session_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def submit(session: str | None, yes: bool) -> None:
    """Hand the work in and end the session."""
    record = meant(session)
    with dial(record) as client:
        standing = client.request("status")
        if not yes:
            _say_what_is_submitted(standing)
        require_yes("Submit now? The session ends and cannot be taken up again", yes=yes)
        client.request("submit")
    click.echo("submitted: the final state is being scored", err=True)
    click.echo("`rebench-workbench survey` asks a few questions that close the session", err=True)


def _say_what_is_submitted(standing: dict[str, Any]) -> None:
    click.echo(f"  time left  {duration(standing['remaining_ms'])}", err=True)
    for name in ("counted", "last"):
        row = standing.get(name)
        if row:
            click.echo(
                f"  {name:9}  {figure(row['raw'])}  #{row['number']} at {duration(row['elapsed_ms'])}",
                err=True,
            )
    for row in standing["pending"]:
        click.echo(f"  scoring    #{row['number']} is still running and will finish", err=True)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench survey",
        'rebench-workbench survey --answer hardest="the projection" --answer hours=6',
    ),
)
@session_option
@click.option(
    "--answer", "given", multiple=True, metavar="KEY=TEXT", help="Answer without being asked; again for more."
)
def survey(session: str | None, given: tuple[str, ...]) -> None:
    """Answer the questions after a session."""
    record = meant(session)
    if is_closed(record):
        raise Stop(
            f"session {record.session} is closed: its questions were answered or left out", Exit.REFUSED
        )
    answers = dict(_split(pair) for pair in given) or _asked(record)
    ask(record, "survey", answers=answers)
    click.echo("thank you; the session is closed once its last score is in", err=True)


def _split(pair: str) -> tuple[str, str]:
    key, equals, text = pair.partition("=")
    if not equals or not key:
        raise Stop(f"--answer {pair!r}: write KEY=TEXT", Exit.USAGE)
    return key, text


def _asked(record: Any) -> dict[str, str]:
    """Ask the environment's questions on the terminal."""
    if not sys.stdin.isatty():
        raise Stop("no terminal to ask on; give --answer KEY=TEXT", Exit.USAGE)
    try:
        questions = record.header()["environment"].get("survey", ())
    except OSError as error:
        raise Stop("the questions cannot be read from here; give --answer KEY=TEXT", Exit.USAGE) from error
    answers = {}
    for question in questions:
        choices = question.get("choices") or ()
        asked = one_line(question["ask"])
        if choices:  # an empty line leaves it open
            asked += f" ({', '.join(map(one_line, choices))})"
        kind = click.Choice((*choices, "")) if choices else str
        answer = click.prompt(asked, type=kind, default="", show_choices=False, show_default=False, err=True)
        answers[question["key"]] = answer
    return answers


@click.command(cls=Command, examples=("rebench-workbench shell",))
@session_option
def shell(session: str | None) -> Exit:
    """Open a recorded shell in the work folder."""
    from workbench.cli.shells import open_recorded

    return open_recorded(meant(session))
