"""Commands over whole records: sessions, verify, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sessions.record.store import Record, Store
from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.panel import phase_words
from workbench.cli.reach import meant, session_argument
from workbench.cli.reading import json_option, print_json
from workbench.cli.text import cells, table, terminal_width
from workbench.ink.figures import DASH, duration, figure, local_time
from workbench.ink.text import literal, one_line


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench sessions",
        "rebench-workbench sessions --live",
        "rebench-workbench sessions --json",
    ),
)
@click.option("--live", is_flag=True, help="Only those that are not closed.")
@json_option
def sessions(live: bool, as_json: bool) -> None:
    """List all sessions."""
    rows = [_overview(record) for record in Store().records()]
    if live:
        rows = [row for row in rows if row["phase"] != "closed"]
    if as_json:
        print_json({"sessions": rows})
    elif not rows:
        click.echo(f"no {'live ' if live else ''}sessions in {Store().folder}", err=True)
    else:
        headers = (
            "session",
            "environment",
            "profile",
            "who",
            "opened",
            "state",
            "used",
            "left",
            "scores",
            "counts",
        )
        lines: list[tuple[str, ...]] = [_cells(row) for row in rows]
        right = "used|left|scores|counts"
        drawn = table(headers, lines, right=right)
        wide = terminal_width()
        if wide is not None and any(cells(line) > wide for line in drawn.split("\n")):
            kept = [n for n, header in enumerate(headers) if header not in ("profile", "opened", "scores")]
            narrow = [tuple(line[n] for n in kept) for line in lines]
            drawn = table([headers[n] for n in kept], narrow, right=right)
        click.echo(drawn)


def _overview(record: Record) -> dict[str, Any]:
    """Return one session's figures; a record that cannot be read is a row that says so."""
    try:
        return _of_closed(record) if record.closed() else _of_live(record)
    except Exception as error:  # noqa: BLE001 - one damaged record must not hide the others
        return {"session": record.session, "phase": "damaged", "problem": str(error)}


def _of_live(record: Record) -> dict[str, Any]:
    from sessions.record.clock import SystemClock
    from workbench.review.answers import folded

    state = folded(record)
    now = SystemClock().now()
    counted = state.counted
    return _row(record, state.opened_at) | {
        "phase": state.phase.value,
        "elapsed_ms": state.elapsed_ms(now),
        "remaining_ms": state.remaining_ms(now),
        "score_calls": sum(row.number > 0 for row in state.scores),
        "raw": None if counted is None else counted.raw,
        "normalised": None if counted is None else counted.normalised,
    }


def _of_closed(record: Record) -> dict[str, Any]:
    """Read the two ends of the log, which say it all: a fold of every closed session would take seconds."""
    log = record.log.read_bytes()
    first, last = log[: log.index(b"\n")], log.rstrip(b"\n").rpartition(b"\n")[2]
    opened, closed = json.loads(first), json.loads(last)["body"]
    budget = opened["body"]["policy"]["budget_ms"]
    return _row(record, opened["at"]) | {
        "phase": "closed",
        "elapsed_ms": closed["elapsed_ms"],
        "remaining_ms": budget - closed["elapsed_ms"],
        "score_calls": max(0, log.count(b'"kind":"score_requested"') - 1),
        "raw": closed["raw"],
        "normalised": closed["normalised"],
    }


def _row(record: Record, opened_at: str) -> dict[str, Any]:
    header = record.header()
    return {
        "session": record.session,
        "environment": header["environment"]["slug"],
        "profile": header["profile"],
        "participant": header["participant"],
        "kind": header["participant_kind"],
        "opened_at": opened_at,
        "work_tree": header["work_tree"],
        "problem": None,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    if row["phase"] == "damaged":
        return (
            row["session"],
            *([DASH] * 4),
            click.style("damaged", fg="red"),
            *([DASH] * 3),
            one_line(row["problem"], 50),
        )
    words, colour = phase_words(row)
    return (
        row["session"],
        literal(row["environment"]),
        literal(row["profile"]),
        one_line(row["participant"], 16),
        local_time(row["opened_at"]),
        click.style(words.partition(",")[0], fg=colour),
        duration(row["elapsed_ms"]),
        DASH if row["phase"] == "closed" else duration(row["remaining_ms"]),
        str(row["score_calls"]),
        figure(row["raw"]) + ("" if row["normalised"] is None else f" ({row['normalised']:.2f})"),
    )


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench verify s-7f3a9c",
        "rebench-workbench verify --all",
        "rebench-workbench verify s-7f3a9c --json",
    ),
)
@session_argument
@click.option("--all", "everything", is_flag=True, help="Every session.")
@click.option("--quick", is_flag=True, help="The log and what it names, without reading every stored file.")
@json_option
def verify(session: str | None, everything: bool, quick: bool, as_json: bool) -> Exit:
    """Recompute a record and say whether it holds."""
    import msgspec

    from sessions.audit.verify import verify as verify_record

    records = list(Store().records()) if everything else [meant(session)]
    reports = [verify_record(record, deep=not quick) for record in records]
    if as_json:
        plain = [msgspec.to_builtins(report) | {"sound": report.sound} for report in reports]
        print_json({"records": plain} if everything else plain[0])
    else:
        for report in reports:
            _print_report(report)
    return Exit.OK if all(report.sound for report in reports) else Exit.DAMAGED


def _print_report(report: Any) -> None:
    state = "closed" if report.closed else "not closed yet"
    if report.sound:
        click.echo(
            f"{click.style('sound', fg='green', bold=True)}  {report.session}: {report.events} events, {state}"
        )
    else:
        click.echo(
            f"{click.style('DAMAGED', fg='red', bold=True)}  {report.session}: {report.events} events hold, {state}"
        )
    for problem in report.problems:
        click.echo(f"  {click.style('✖', fg='red')} {literal(problem)}")
    for remark in report.remarks:
        click.echo(f"  {click.style('·', dim=True)} {literal(remark)}")


@click.command(
    cls=Command,
    examples=("rebench-workbench report s-7f3a9c", "rebench-workbench report s-7f3a9c --output jo.html"),
)
@session_argument
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Else SESSION.html.")
def report(session: str | None, output: Path | None) -> None:
    """Write one self-contained HTML page about a session."""
    from workbench.page.report import session_page

    record = meant(session)
    target = output or Path(f"{record.session}.html")
    page = session_page(record)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Stop(f"cannot write {target}: {error.strerror or error}", Exit.USAGE) from error
    click.echo(str(target))
