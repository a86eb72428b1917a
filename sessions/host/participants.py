"""How the participant's shells and commands are started: what they see, as whom, with which variables."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from environments.machine.home import HOME_VARIABLE
from sessions.host.isolation import Guarded, Surroundings, command_in, participant_variables
from sessions.host.wiring import Wiring
from sessions.record.events import Isolation
from sessions.record.store import RUNTIME_VARIABLE, SESSION_VARIABLE, Record, runtime_folder


class Participant:
    """The participant's side of one session on this machine."""

    def __init__(self, record: Record, level: Isolation, surroundings: Surroundings) -> None:
        self._record = record
        self._level = level
        self._surroundings = surroundings
        self.more_variables: dict[str, str] = {}
        """Set by what starts after us, such as the gateway."""

    @property
    def user_id(self) -> int | None:
        """The participant's account, where it is another than ours."""
        account = self._surroundings.account
        return None if account is None or self._level is not Isolation.USER else pwd.getpwnam(account).pw_uid

    def command(self, argv: Sequence[str], *, terminal: bool) -> list[str]:
        """Return `argv` as it is started for the participant; `terminal` where it owns one of ours."""
        return command_in(self._level, argv, replace(self._surroundings, terminal=terminal))

    def variables(self) -> dict[str, str]:
        """Return the variables of the participant's commands: no keys, but our Python and which session this is."""
        ours = participant_variables(self._level, os.environ, self._surroundings)
        return ours | {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), ours.get("PATH", os.defpath))),
            SESSION_VARIABLE: self._record.session,
            HOME_VARIABLE: str(self._record.home),
            RUNTIME_VARIABLE: str(runtime_folder()),
            **self.more_variables,
        }


def surroundings_of(record: Record, work_tree: Path, wiring: Wiring, hidden: Sequence[str]) -> Surroundings:
    """Return what the participant's commands are started in; `hidden` names packages that hold held-out data."""
    home = record.home
    return Surroundings(
        work_folder=work_tree,
        masks=(home, wiring.assets.protected, runtime_folder(), *package_folders(hidden)),
        visible=(wiring.assets.public, record.participant_socket.parent, *own_folders_below(Path("/tmp"))),  # noqa: S108
        private=home / "private" / record.session,
        account=wiring.participant_user,
    )


def guarded_of(record: Record, wiring: Wiring, hidden: Sequence[str]) -> tuple[Guarded, ...]:
    """Return what a participant must not reach."""
    return (
        Guarded("the records", record.folder.parent),
        Guarded("protected assets", wiring.assets.protected),
        Guarded("the proctor's socket", record.proctor_socket.parent),
        *(Guarded(f"package {folder.name}", folder, decisive=False) for folder in package_folders(hidden)),
    )


def own_folders_below(folder: Path) -> tuple[Path, ...]:
    """Return what of our interpreter and our code lies in `folder`, where a sandbox's own /tmp would cover it."""
    ours = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[2])
    return tuple(path for path in ours if path.is_relative_to(folder))


def package_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """Return where packages are installed; those that are not are left out."""
    specs = (find_spec(name) for name in names)
    return tuple(Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None)
