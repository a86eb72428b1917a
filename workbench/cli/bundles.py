"""Commands that move whole records: bundle, import."""

from __future__ import annotations

from pathlib import Path

import click

from sessions.record.store import Store
from workbench.cli.command import Command
from workbench.cli.reach import meant, session_argument
from workbench.ink.figures import size


@click.command(
    cls=Command,
    examples=("rebench-workbench bundle s-7f3a9c", "rebench-workbench bundle s-7f3a9c --output ~/records"),
)
@session_argument
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=Path(), help="A folder, or the file to write."
)
def bundle(session: str | None, output: Path) -> None:
    """Write a session's record into one file, which opens and verifies anywhere."""
    from sessions.audit.bundles import bundle as write

    path = write(meant(session), output)
    click.echo(path)
    click.echo(
        f"{size(path.stat().st_size)}; `rebench-workbench import {path.name}` takes it in elsewhere", err=True
    )


@click.command(name="import", cls=Command, examples=("rebench-workbench import s-7f3a9c.rebench.tar.gz",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_(file: Path) -> None:
    """Take a bundled record into this store, if it verifies."""
    from sessions.audit.bundles import take_in

    record = take_in(file, Store())
    click.echo(record.session)
    click.echo(f"sound, now in {record.folder}", err=True)
