"""Finds the session meant and asks its host, or reads its log where it is closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sessions.clients.client import Client, HostGone, greeted
from sessions.record.store import SESSION_VARIABLE, Record, SessionNotFound, Store, runtime_folder
from workbench.cli.exits import Exit, Stop

F = TypeVar("F", bound=Callable[..., Any])


def _complete_sessions(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [r.session for r in Store().records() if r.session.startswith(incomplete)]


def session_option(function: F) -> F:
    """Add `--session`."""
    return click.option(
        "--session",
        "-s",
        metavar="ID",
        shell_complete=_complete_sessions,
        help="Which session; else $REBENCH_SESSION, the work folder you stand in, or the only live one.",
    )(function)


session_argument = click.argument("session", required=False, shell_complete=_complete_sessions)


def meant(session: str | None) -> Record:
    """Return the record of the session meant.

    Raises:
        SessionNotFound: none or several match.
    """
    store = Store()
    try:
        return store.find(session)
    except (PermissionError, SessionNotFound) as error:
        # In a sandbox the records are hidden, and with a user of one's own they are closed: the socket is there.
        try:
            return _by_socket(session or os.environ.get(SESSION_VARIABLE), store)
        except SessionNotFound:
            if isinstance(error, SessionNotFound):
                raise error from None
            raise


def _by_socket(wanted: str | None, store: Store) -> Record:
    """Find a session whose record belongs to another user, by the socket it offers to us."""
    folder = runtime_folder()
    offered = sorted(path.parents[1].name for path in folder.glob("*/participant/participant.sock"))
    matching = [name for name in offered if wanted is None or wanted in {name, name.removeprefix("s-")}]
    if len(matching) != 1:
        raise SessionNotFound(
            f"the records in {store.folder} belong to another user, and of the sessions that listen in {folder} "
            f"({', '.join(offered) or 'none'}) {len(matching)} match; say which with --session"
        )
    return Record(store.folder / matching[0])


def is_closed(record: Record) -> bool:
    """Whether the session is over; False where its record is not ours to read."""
    try:
        return record.closed()
    except (PermissionError, FileNotFoundError):
        return False


def dial(record: Record, *, proctor: bool = False) -> Client:
    """Connect to the session's host, starting it from the log when it is not there.

    Raises:
        Stop: the session is closed.
        HostGone: it neither answers nor starts.
    """
    path = record.proctor_socket if proctor else record.participant_socket
    try:
        return greeted(path)
    except HostGone:
        if is_closed(record):
            raise Stop(
                f"session {record.session} is closed and is never written again; "
                f"`rebench-workbench replay {record.session}` shows it",
                Exit.REFUSED,
            ) from None
    from sessions.clients.hosting import connect

    return connect(record, proctor=proctor)


def ask(record: Record, method: str, *, proctor: bool = False, **parameters: Any) -> dict[str, Any]:
    """Ask the host one thing."""
    with dial(record, proctor=proctor) as client:
        return client.request(method, **parameters)


def read(record: Record, method: str, **parameters: Any) -> dict[str, Any]:
    """Ask for something that changes nothing: once more if the host died under the question, the log if closed."""
    try:
        if not is_closed(record):
            try:
                return ask(record, method, **parameters)
            except HostGone:
                return ask(record, method, **parameters)
    except Stop:
        # It closed between the look and the question.
        if not is_closed(record):
            raise
    from workbench.review import answers

    return answers.answer(record, method, **parameters)


def proctor_name() -> str:
    """Return who acts: the login name, for the audit trail."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()
