"""The three commands of a checkout: start, test, check."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.bootstrap import checks, machine, on_path
from scripts.bootstrap.installation import Installation, install
from scripts.bootstrap.opening import activated, command_to_open
from scripts.bootstrap.pip import child_environment
from scripts.bootstrap.talk import Exit, Stopped, Talk

FIRST_ENVIRONMENT = "restricted_mlm"
USAGE = {
    "start": """scripts/start [ENVIRONMENT] [--new | options of `rebench-workbench start`]
Sets everything up (once) and opens a session of ENVIRONMENT, else restricted_mlm; goes back to one that is open.""",
    "test": """scripts/test [--all | arguments of pytest]
Sets up the tools for testing (once), then runs every check and the fast tests; --all: the slow ones too.""",
    "check": """scripts/check [--all | arguments of pytest]
The same checks and tests in an environment that is set up already.""",
}


def main(arguments: list[str], *, root: Path) -> int:
    talk = Talk()
    command, *rest = arguments or ["help"]
    known = {"start": start, "test": test, "check": check}
    if command not in known:
        talk.line(f"scripts/bootstrap knows {', '.join(known)}; got {command!r}.")
        return Exit.USAGE
    if rest[:1] in (["--help"], ["-h"]):
        print(USAGE[command])
        return Exit.OK
    try:
        return known[command](rest, root, talk)
    except Stopped as stopped:
        talk.line()
        talk.line(str(stopped))
        return stopped.code
    except KeyboardInterrupt:
        talk.line()
        talk.line("Interrupted. Running the same command again goes on from here.")
        return Exit.INTERRUPTED


def start(arguments: list[str], root: Path, talk: Talk) -> Exit:
    """Install, prepare the environment's files, and open a session in this terminal."""
    named = arguments[:1] if arguments and not arguments[0].startswith("-") else []
    environment = named[0] if named else FIRST_ENVIRONMENT
    options = arguments[len(named) :]
    talk.line(f"rebench-workbench: setting up {environment}")
    installation = _set_up(root, "environments", talk)
    on_path.link(installation.command, talk)
    _prepare(installation, environment, options, talk)
    terminal = machine.has_terminal()
    command = command_to_open(installation, environment, options, talk, terminal=terminal)
    talk.line(f"  opening: rebench-workbench {' '.join(command[1:])}")
    os.execve(command[0], command, activated(installation))  # noqa: S606 - a fixed program, no shell


def test(arguments: list[str], root: Path, talk: Talk) -> int:
    """Install with the tools for testing, then check everything, or run pytest as asked."""
    talk.line("rebench-workbench: setting up for tests")
    installation = _set_up(root, "dev", talk)
    return _run_checks(arguments, installation, talk)


def check(arguments: list[str], root: Path, talk: Talk) -> int:
    """The checks alone, in an installation that is already there."""
    installation = Installation.of(root)
    if not (installation.venv / "bin" / "ruff").exists():
        raise Stopped(f"{installation.venv} has no tools for testing yet: run scripts/test once.")
    return _run_checks(arguments, installation, talk)


def _run_checks(arguments: list[str], installation: Installation, talk: Talk) -> int:
    bin_folder = installation.venv / "bin"
    if arguments in ([], ["--all"]):
        return checks.run_all(installation.root, bin_folder, talk, slow=bool(arguments))
    return checks.run_pytest(installation.root, bin_folder, arguments)


def _set_up(root: Path, extra: str, talk: Talk) -> Installation:
    machine.require_platform()
    machine.require_git()
    version = ".".join(str(part) for part in sys.version_info[:3])
    talk.line(f"  Python {version} and git are here")
    installation = Installation.of(root)
    install(installation, extra, talk)
    machine.recommend(talk)
    return installation


def _prepare(installation: Installation, environment: str, options: list[str], talk: Talk) -> None:
    command = [str(installation.command), "env", "prepare", environment, *_profile(options)]
    with talk.step(f"files of {environment}: rebench-workbench {' '.join(command[1:])}"):
        done = subprocess.run(command, check=False, env=child_environment())
    if done.returncode == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    if done.returncode != 0:
        raise Stopped(
            f"Preparing {environment} ended with exit code {done.returncode}; what went wrong stands above.",
            Exit(done.returncode) if done.returncode in set(Exit) else Exit.PREPARE,
        )


def _profile(options: list[str]) -> list[str]:
    """The session's profile decides which files are prepared."""
    for index, option in enumerate(options):
        if option.startswith("--profile="):
            return [option]
        if option == "--profile" and index + 1 < len(options):
            return options[index : index + 2]
    return []
