"""Attaches this terminal to a recorded shell of the session."""

from __future__ import annotations

import sys

import click

from sessions.record.store import Record
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import ask


def open_recorded(record: Record) -> Exit:
    """Open a recorded shell in the work folder; ends with it.

    Raises:
        Stop: there is no terminal, or no recorder answers.
    """
    from sessions.recording.attach import NothingToAttach, run

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Stop("a shell needs a terminal; agents use `exec` (see `headless --help`)", Exit.USAGE)
    socket = ask(record, "open_shell")["socket"]
    click.secho(f"This shell is recorded, in {record.session}; `exit` leaves it.", dim=True, err=True)
    try:
        run(socket)
    except NothingToAttach as error:
        raise Stop(str(error), Exit.INFRASTRUCTURE) from error
    return Exit.OK
