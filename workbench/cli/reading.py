"""Commands that show where a session stands: status, time, history, brief."""

from __future__ import annotations

import json
import re
import sys
import time as clock
from typing import TYPE_CHECKING, Any

import click

from environments.literal import harmless
from workbench.cli.command import Command
from workbench.cli.exits import Exit
from workbench.cli.panel import history_table, line, panel
from workbench.cli.reach import meant, read, session_option
from workbench.ink.figures import duration
from workbench.ink.text import literal

if TYPE_CHECKING:
    from sessions.record.store import Record

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(_escaped(json.dumps(value, indent=2, ensure_ascii=ascii_only)))


def _escaped(text: str) -> str:
    """Return JSON whose strings a terminal shows and does not obey: what JSON itself leaves raw is spelt out."""
    return re.sub("[^ -~\n]", lambda found: found[0] if harmless(found[0]) else _spelt(found[0]), text)


def _spelt(character: str) -> str:
    """Return a character as JSON spells it in ASCII: as one or two escapes."""
    return json.dumps(character)[1:-1]


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench status",
        "rebench-workbench status --line     # one line, for a tmux status bar or a prompt",
        "rebench-workbench status --json | jq .remaining_ms",
    ),
)
@session_option
@click.option("--line", "as_line", is_flag=True, help="One short line.")
@click.option("--watch", is_flag=True, help="Draw it again every second, in place; q or Ctrl-C leaves.")
@json_option
def status(session: str | None, as_line: bool, watch: bool, as_json: bool) -> Exit:
    """Show time, scores and health of a session."""
    record = meant(session)
    if not watch:
        _show(read(record, "status"), as_line=as_line, as_json=as_json)
    elif sys.stdout.isatty() and sys.stdin.isatty() and not as_json:
        return _watch_inline(record, as_line=as_line)
    else:
        _watch_plain(record, as_line=as_line, as_json=as_json)
    return Exit.OK


def _watch_inline(record: Record, *, as_line: bool) -> Exit:
    """Draw below the prompt, in place; what stood there stays."""
    from workbench.tui.inline import watch

    def draw() -> tuple[str, bool]:
        standing = read(record, "status")
        return (line(standing) if as_line else panel(standing)), standing["phase"] != "closed"

    return Exit.OK if watch(draw) else Exit.INTERRUPTED


def _watch_plain(record: Record, *, as_line: bool, as_json: bool) -> None:
    """One after the other, for files and pipes."""
    while True:
        standing = read(record, "status")
        _show(standing, as_line=as_line, as_json=as_json)
        sys.stdout.flush()
        if standing["phase"] == "closed":
            return
        clock.sleep(1.0)


def _show(standing: dict[str, Any], *, as_line: bool, as_json: bool) -> None:
    if as_json:
        print_json(standing)
    else:
        click.echo(line(standing) if as_line else panel(standing))


@click.command(cls=Command, examples=("rebench-workbench time", "rebench-workbench time --json"))
@session_option
@json_option
def time(session: str | None, as_json: bool) -> None:
    """Print how much time is left."""
    standing = read(meant(session), "status")
    if as_json:
        keys = ("session", "phase", "elapsed_ms", "remaining_ms", "paused_ms", "budget_ms")
        print_json({key: standing[key] for key in keys})
    else:
        click.echo(duration(standing["remaining_ms"]))


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench history",
        "rebench-workbench history --json | jq '.rows[-1].message'",
    ),
)
@session_option
@json_option
def history(session: str | None, as_json: bool) -> None:
    """List every score of a session."""
    record = meant(session)
    rows = read(record, "history")
    if as_json:
        print_json(rows)
        return
    standing = read(record, "status")
    click.echo(history_table(rows["rows"], standing))


@click.command(
    cls=Command, examples=("rebench-workbench brief", "rebench-workbench brief --plain > brief.md")
)
@session_option
@click.option("--plain", is_flag=True, help="The Markdown as it is, even on a terminal.")
@json_option
def brief(session: str | None, plain: bool, as_json: bool) -> None:
    """Show the task; only once the clock has started."""
    answer = read(meant(session), "brief")
    if as_json:
        print_json(answer)
    elif plain or not sys.stdout.isatty():
        click.echo(answer["text"].rstrip("\n"))
    else:
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console(width=min(100, Console().width))
        console.print(Markdown(literal(answer["text"]), hyperlinks=False))
