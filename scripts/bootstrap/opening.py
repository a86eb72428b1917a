"""Opens a session, or goes back to the one that is already going on."""

import json
import os
import subprocess
from pathlib import Path

from scripts.bootstrap.installation import Installation
from scripts.bootstrap.pip import child_environment
from scripts.bootstrap.talk import Talk

NEW = "--new"


def command_to_open(
    installation: Installation, environment: str, options: list[str], talk: Talk, *, terminal: bool
) -> list[str]:
    """Return the command for what `scripts/start ENVIRONMENT OPTIONS` asks for.

    Without options a session of that environment that is still open is gone back to: running the same command
    twice must not leave two clocks. Options, `--new` among them, ask for another session.
    """
    program = str(installation.command)
    live = None if options else live_session(installation, environment)
    if live is None:
        rest = [option for option in options if option != NEW]
        if not terminal:
            talk.line("  this is no terminal, so the session gets no screen; what to do next is printed")
        return [program, "start", environment, *rest]
    talk.line(
        f"  a session of {environment} is open, {live}: going back to it (another one: scripts/start {environment} {NEW})"
    )
    return [program, "attach", live] if terminal else [program, "status", "--session", live]


def activated(installation: Installation) -> dict[str, str]:
    """Our environment with the virtual one activated, so that `python` has torch in what the session opens."""
    environment = child_environment()
    inherited = environment.get("PATH", os.defpath)
    return environment | {
        "VIRTUAL_ENV": str(installation.venv),
        "PATH": f"{installation.venv / 'bin'}{os.pathsep}{inherited}",
    }


def live_session(installation: Installation, environment: str) -> str | None:
    """The open session whose work folder we stand in, else the newest of a person in that environment, if any."""
    command = [str(installation.command), "sessions", "--live", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=child_environment())
    try:
        rows = json.loads(done.stdout)["sessions"] if done.returncode == 0 else []
    except (ValueError, KeyError):
        return None
    found = [row for row in rows if row.get("environment") == environment and row.get("kind") != "agent"]
    chosen = max(found, key=lambda row: (_stand_in(row), str(row["opened_at"])), default=None)
    return None if chosen is None else str(chosen["session"])


def _stand_in(row: dict[str, object]) -> bool:
    folder = row.get("work_tree")
    return bool(folder) and Path.cwd().is_relative_to(str(folder))
