"""Waiting for a score: progress on standard error, and a choice on Ctrl-C."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from sessions.clients.client import Client, HostGone
from sessions.record.store import Record
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import ask, dial, read
from workbench.ink.text import one_line

_FROM_NOW = 2**53
"""A sequence number no log reaches: only what happens from now on is told."""


def follow_score(record: Record, note: str) -> dict[str, Any]:
    """Ask for a score and wait for it; returns its row.

    Raises:
        Refusal: the session does not allow it now.
        KeyboardInterrupt: the user left, after choosing what becomes of the scoring.
    """
    with dial(record) as listening, dial(record) as asking:
        listening.request("events", from_seq=_FROM_NOW)
        row = asking.request("score", note=note, wait=False)
        try:
            _show_until_recorded(listening, row["number"])
            return _row(record, row["number"])
        except KeyboardInterrupt:
            _leave(record, row["number"])
            raise


def _show_until_recorded(listening: Client, number: int) -> None:
    """Show progress until the scoring has ended, or the host has."""
    talk = Progress(number, sys.stderr.isatty())
    try:
        for message in listening.heard():
            event = message["params"]
            if message["method"] != "event" or event["body"].get("number") != number:
                continue
            if event["kind"] == "score_progressed":
                talk.show(event["body"]["stage"], event["body"]["fraction"])
            elif event["kind"] == "score_recorded":
                return
    except HostGone:
        return
    finally:
        talk.end()


def _row(record: Record, number: int) -> dict[str, Any]:
    """Return the finished row; a host that died under the scoring is started again and finishes it."""
    while True:
        rows: list[dict[str, Any]] = read(record, "history")["rows"]
        if number >= len(rows):
            raise Stop(f"score #{number} is not in the record", Exit.INFRASTRUCTURE)
        if rows[number]["status"] is not None:
            return rows[number]
        time.sleep(0.25)


def _leave(record: Record, number: int) -> None:
    """Ask what becomes of a scoring that nobody waits for any more; without a terminal it goes on."""
    click.echo("", err=True)
    if sys.stdin.isatty() and sys.stderr.isatty():
        try:
            if click.confirm(f"Cancel score #{number}? (No leaves it running)", default=False, err=True):
                ask(record, "cancel_score", number=number)
                click.echo(f"score #{number} is cancelled", err=True)
                return
        except click.Abort:
            pass
    click.echo(f"score #{number} goes on; `rebench-workbench history` will show it", err=True)


class Progress:
    """One line that is drawn over on a terminal; elsewhere a line for each new stage."""

    def __init__(self, number: int, terminal: bool) -> None:
        self._number = number
        self._terminal = terminal
        self._stage = ""

    def show(self, stage: str, fraction: float | None) -> None:
        percent = "" if fraction is None else f" {fraction:.0%}"
        words = f"scoring #{self._number} · {one_line(stage, 60)}{percent}"
        if self._terminal:
            click.echo(f"\r\x1b[K{words}", nl=False, err=True)
        elif stage != self._stage:
            click.echo(words, err=True)
        self._stage = stage

    def end(self) -> None:
        if self._terminal and self._stage:
            click.echo("\r\x1b[K", nl=False, err=True)
