"""The rules a participant agrees to, and the way from an opened session to a running clock."""

from __future__ import annotations

import sys
import time
from hashlib import sha256
from importlib.resources import files

import click

from sessions.clients.client import Client
from workbench.cli.exits import Exit, Stop


def rules_text() -> str:
    return files("workbench").joinpath("rules.md").read_text(encoding="utf-8")


def rules_sha256() -> str:
    return sha256(rules_text().encode()).hexdigest()


def begin_session(client: Client, *, yes: bool) -> None:
    """Agree to the rules, wait for the starting score, start the clock.

    Raises:
        Stop: nobody is there to agree, or they did not.
    """
    if not yes:
        _agree()
    client.request("consent", rules_sha256=rules_sha256())
    wait_until_ready(client)
    client.request("start_clock")


def _agree() -> None:
    if not sys.stdin.isatty():
        raise Stop(
            "no terminal to show the rules on; read them with `begin --rules` and give --yes", Exit.USAGE
        )
    from rich.console import Console
    from rich.markdown import Markdown

    Console(stderr=True, width=min(100, Console(stderr=True).width)).print(
        Markdown(rules_text(), hyperlinks=False)
    )
    if not click.confirm("Do you agree, and shall the clock start now?", err=True):
        raise Stop("the clock has not started", Exit.REFUSED)


def wait_until_ready(client: Client) -> None:
    """Wait for the starting score; it costs no session time."""
    from workbench.cli.scoring import Progress

    talk = Progress(0, sys.stderr.isatty())
    while (standing := client.request("status"))["phase"] == "opened":
        for row in standing["pending"]:
            talk.show(f"starting score (free): {row['stage'] or 'waiting'}", row["fraction"])
        time.sleep(0.3)
    talk.end()
