"""Commands over snapshots: diff and checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import ask, is_closed, meant, session_option
from workbench.cli.reading import json_option, print_json
from workbench.ink.figures import size
from workbench.ink.text import literal

_MARKS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "modified": ("~", "yellow"),
    "type-changed": ("!", "magenta"),
}


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench diff              # the work folder against the last snapshot",
        "rebench-workbench diff 3 5          # snapshot 3 against snapshot 5",
        "rebench-workbench diff --scores 1 2 # what changed between two scores",
    ),
)
@session_option
@click.argument("old", type=int, required=False)
@click.argument("new", type=int, required=False)
@click.option("--scores", is_flag=True, help="The numbers are those of scores, as `history` lists them.")
@click.option("--names", is_flag=True, help="Names only, no contents.")
@json_option
def diff(
    session: str | None, old: int | None, new: int | None, scores: bool, names: bool, as_json: bool
) -> None:
    """Show what changed between two snapshots, or since the last."""
    record = meant(session)
    if old is None:
        changes = ask(record, "changed")
        print_json(changes) if as_json else _print_changed(changes["files"], changes["unlisted"])
        return
    if new is None:
        raise click.UsageError("give two numbers, or none for what changed since the last snapshot")
    if scores:
        old, new = _snapshot_of(record, old), _snapshot_of(record, new)
    found = _compare(record, old, new)
    if as_json:
        print_json(found)
    else:
        from workbench.review.changes import diff_lines

        click.echo("\n".join(diff_lines(found, names_only=names)) or "no difference")


def _compare(record: Any, old: int, new: int) -> dict[str, Any]:
    if not is_closed(record):
        return ask(record, "diff", old=old, new=new)
    from workbench.review.changes import compare

    return compare(record, old, new)


def _snapshot_of(record: Any, number: int) -> int:
    from workbench.cli.reach import read

    rows = read(record, "history")["rows"]
    if not 0 <= number < len(rows) or rows[number]["snapshot"] is None:
        raise Stop(f"no score {number} with a snapshot; `rebench-workbench history` lists them", Exit.USAGE)
    return int(rows[number]["snapshot"])


def _print_changed(changes: list[dict[str, Any]], unlisted: int) -> None:
    for change in changes:
        mark, colour = _MARKS.get(change["kind"], ("?", "white"))
        about = "" if change["size"] is None else f"  {size(change['size'])}"
        click.echo(f"{click.style(mark, fg=colour)} {literal(change['path'])}{click.style(about, dim=True)}")
    if unlisted:
        click.secho(f"and {unlisted} more files", fg="yellow")
    if not changes:
        click.echo("nothing changed since the last snapshot", err=True)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench checkout 12 ./snapshot-12 --session s-7f3a9c",
        "rebench-workbench checkout 3 ./score-3 --scores",
    ),
)
@session_option
@click.argument("number", type=int)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--scores", is_flag=True, help="The number is that of a score.")
@json_option
def checkout(session: str | None, number: int, folder: Path, scores: bool, as_json: bool) -> Exit:
    """Restore a snapshot into a folder, byte for byte."""
    import msgspec

    from workbench.review.changes import reading

    record = meant(session)
    wanted = _snapshot_of(record, number) if scores else number
    with reading(record) as store:
        done = store.checkout(wanted, folder)
    if as_json:
        print_json(msgspec.to_builtins(done) | {"complete": done.complete})
    else:
        click.echo(f"{done.files} files, {size(done.bytes)} in {literal(str(folder))} (snapshot {wanted})")
        for missing in done.missing:
            click.secho(
                f"  not restored: {literal(missing.path)}: {literal(missing.reason)}", fg="yellow", err=True
            )
    return Exit.OK
