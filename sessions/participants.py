"""How the participant's shells and commands are started: what they see, as whom, with which variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sessions.events import Isolation
from sessions.store import SESSION_VARIABLE, Record
from sessions.wiring import Wiring

SECRET_PREFIXES = ("REBENCH_WORKBENCH_KEY",)


def participant_environment(record: Record) -> dict[str, str]:
    """Return the variables of participant commands: ours without keys, plus which session this is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SECRET_PREFIXES)}
    return {**kept, SESSION_VARIABLE: record.session}


def participant_wrapper(
    level: Isolation, work_tree: Path, wiring: Wiring
) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return what turns a command into the same command under the session's isolation."""
    if level is Isolation.NONE:
        return lambda argv: argv
    from sessions.isolation import participant_command

    def wrap(argv: Sequence[str]) -> Sequence[str]:
        return participant_command(level, argv, work_tree, wiring.masked, user=wiring.participant_user)

    return wrap
