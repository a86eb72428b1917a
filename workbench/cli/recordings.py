"""The command over terminal recordings: list them, or write one as an asciicast."""

from __future__ import annotations

from pathlib import Path

import click

from sessions.record.store import Record
from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import meant, session_argument
from workbench.cli.reading import json_option, print_json
from workbench.cli.text import table
from workbench.ink.figures import size
from workbench.ink.text import one_line


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench recordings s-7f3a9c",
        "rebench-workbench recordings s-7f3a9c --export 1 --output shell.cast",
        "rebench-workbench recordings s-7f3a9c --export 1 --asciicast 3",
    ),
)
@session_argument
@click.option("--export", "number", type=int, metavar="N", help="Write recording N as an asciicast.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Else SESSION-N.cast.")
@click.option(
    "--asciicast",
    type=click.Choice(["2", "3"]),
    default="2",
    show_default=True,
    help="Version of the format.",
)
@json_option
def recordings(
    session: str | None, number: int | None, output: Path | None, asciicast: str, as_json: bool
) -> None:
    """List a session's terminal recordings, or export one."""
    record = meant(session)
    if number is not None:
        _export(record, number, output, asciicast)
        return
    rows = _rows(record)
    if as_json:
        print_json({"session": record.session, "recordings": rows})
    elif not rows:
        click.echo(f"{record.session} has no recorded shells", err=True)
    else:
        cells = [
            (str(r["number"]), one_line(str(r["command"]), 60), size(float(str(r["bytes"]))), str(r["state"]))
            for r in rows
        ]
        click.echo(table(("#", "shell", "output", "state"), cells, right="#|output"))


def _rows(record: Record) -> list[dict[str, object]]:
    from sessions.recording.reader import RecordingUnreadable, figures_of
    from workbench.review.answers import folded

    rows: list[dict[str, object]] = []
    for shell in folded(record).shells:
        if shell.recording is None:
            continue
        try:
            count = figures_of(record.recordings / str(shell.recording)).output_bytes
            state = "closed" if shell.closed else "running"
        except RecordingUnreadable:
            count, state = 0, "unreadable"
        rows.append({"number": shell.recording, "command": shell.command, "bytes": count, "state": state})
    return rows


def _export(record: Record, number: int, output: Path | None, version: str) -> None:
    from sessions.recording.asciicast import Version, export
    from sessions.recording.reader import RecordingUnreadable

    target = output or Path(f"{record.session}-{number}.cast")
    try:
        count = export(record.recordings / str(number), target, Version(int(version)))
    except RecordingUnreadable as error:
        raise Stop(
            f"recording {number} of {record.session} cannot be exported: {error}", Exit.USAGE
        ) from error
    click.echo(target)
    click.echo(
        f"{count} events, without what a terminal should not be told; `asciinema play {target}`", err=True
    )
