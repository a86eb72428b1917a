"""Asks before what cannot be undone; a script says --yes instead."""

from __future__ import annotations

import sys

import click

from workbench.cli.exits import Exit, Stop


def require_yes(question: str, *, yes: bool) -> None:
    """Return once the user has agreed.

    Raises:
        Stop: they did not, or there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stop("no terminal to ask on; give --yes where it is meant", Exit.USAGE)
    if not click.confirm(question, err=True):
        raise Stop("nothing has changed", Exit.REFUSED)
