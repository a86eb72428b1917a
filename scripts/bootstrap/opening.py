"""Opens a session, or goes back to the one that is already going on; puts the program on the user's path."""

import json
import os
import subprocess
from pathlib import Path

from scripts.bootstrap.installation import Installation
from scripts.bootstrap.talk import say

PROGRAM = "rebench-workbench"
NEW = "--new"


def command_to_open(
    place: Installation, environment: str, options: list[str], *, terminal: bool
) -> list[str]:
    """The program's arguments for what `scripts/start ENVIRONMENT OPTIONS` asks for.

    Without options an open session of that environment is gone back to: running the same command twice must
    not leave two clocks. Options, `--new` among them, ask for another session.
    """
    live = None if options else live_session(place, environment)
    if live is None:
        return ["start", environment, *(option for option in options if option != NEW)]
    say(f"  {live} is open: going back to it (another one: scripts/start {environment} {NEW})")
    return ["attach", live] if terminal else ["status", "--session", live]


def live_session(place: Installation, environment: str) -> str | None:
    """The open session whose work folder we stand in, else the newest of a person in that environment, if any."""
    command = [place.program(PROGRAM), "sessions", "--live", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=place.environment())
    try:
        rows = json.loads(done.stdout)["sessions"] if done.returncode == 0 else []
    except (ValueError, KeyError):
        return None
    found = [row for row in rows if row.get("environment") == environment and row.get("kind") != "agent"]
    chosen = max(found, key=lambda row: (_stand_in(row), str(row["opened_at"])), default=None)
    return None if chosen is None else str(chosen["session"])


def link(place: Installation) -> None:
    """Put the program on the user's path by a link; nobody's file is ever replaced."""
    if os.environ.get("REBENCH_NO_LINK") == "1":
        return
    command, folder = Path(place.program(PROGRAM)), _folder_on_the_path()
    target = folder / PROGRAM
    if target.is_symlink() and target.readlink() == command:
        return
    if os.path.lexists(target) and not (target.is_symlink() and target.readlink().name == PROGRAM):
        say(f"  note: {target} belongs to something else and stays; the command is {command}")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(command)
    except OSError as error:
        say(f"  note: could not link {target} ({error.strerror}); the command is {command}")
        return
    on_path = str(folder) in _path()
    say(f"  {PROGRAM}: {target}" + ("" if on_path else f'; for your path: export PATH="{folder}:$PATH"'))


def _folder_on_the_path() -> Path:
    """~/.local/bin; /usr/local/bin where only that is on the path and ours to write, as for root."""
    own, shared = Path("~/.local/bin").expanduser(), Path("/usr/local/bin")
    only_shared = str(own) not in _path() and str(shared) in _path() and os.access(shared, os.W_OK)
    return shared if only_shared else own


def _path() -> list[str]:
    return os.environ.get("PATH", "").split(os.pathsep)


def _stand_in(row: dict[str, object]) -> bool:
    folder = row.get("work_tree")
    return bool(folder) and Path.cwd().is_relative_to(str(folder))
