"""The three commands of a checkout: start, test, check."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.bootstrap import checks
from scripts.bootstrap.installation import LOCKED, OLDEST, Installation, install
from scripts.bootstrap.opening import PROGRAM, command_to_open, link
from scripts.bootstrap.talk import Exit, Stopped, say

FIRST_ENVIRONMENT = "restricted_mlm"
USAGE = {
    "start": """scripts/start [ENVIRONMENT] [--new | options of `rebench-workbench start`]
Sets everything up (once) and opens a session of ENVIRONMENT, else restricted_mlm; goes back to one that is open.""",
    "test": """scripts/test [--oldest] [--all | --quick | arguments of pytest]
Sets up the tools for testing (once), then runs every check and the fast tests. --all: the slow ones too; --quick: under
a minute; --oldest: with the oldest releases that pyproject.toml allows, in a virtual environment of their own.""",
    "check": """scripts/check [--oldest] [--all | --quick | arguments of pytest]
The same checks and tests in an environment that is set up already.""",
}


def main(root: Path, command: str, *arguments: str) -> int:
    if arguments[:1] in {("--help",), ("-h",)}:
        print(USAGE[command])
        return Exit.OK
    try:
        return {"start": start, "test": test, "check": check}[command](root, list(arguments))
    except Stopped as stopped:
        say(f"\n{stopped}")
        return stopped.code
    except KeyboardInterrupt:
        say("\nInterrupted. Running the same command again goes on from here.")
        return Exit.INTERRUPTED


def start(root: Path, arguments: list[str]) -> int:
    """Install, prepare the environment's files, and open a session in this terminal."""
    named = bool(arguments) and not arguments[0].startswith("-")
    environment = arguments[0] if named else FIRST_ENVIRONMENT
    options = arguments[1:] if named else arguments
    place = _set_up(root, "environments", LOCKED)
    link(place)
    _prepare(place, environment, options)
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    command = command_to_open(place, environment, options, terminal=terminal)
    say(f"  {PROGRAM} {' '.join(command)}")
    os.execve(place.program(PROGRAM), [PROGRAM, *command], place.environment())  # noqa: S606 - no shell


def test(root: Path, arguments: list[str]) -> int:
    """Install with the tools for testing, then check everything, or run pytest as asked."""
    releases, asked = _releases(arguments)
    return checks.run(_set_up(root, "dev", releases), asked)


def check(root: Path, arguments: list[str]) -> int:
    """The checks alone, in an installation that is already there."""
    releases, asked = _releases(arguments)
    place = Installation.of(root, releases)
    if not Path(place.program("ruff")).exists():
        raise Stopped(f"{place.venv} has no tools for testing yet: run scripts/test once.")
    return checks.run(place, asked)


def _releases(arguments: list[str]) -> tuple[str, list[str]]:
    oldest = "--oldest" in arguments
    return (OLDEST if oldest else LOCKED), [argument for argument in arguments if argument != "--oldest"]


def _set_up(root: Path, extra: str, releases: str) -> Installation:
    if shutil.which("git") is None:
        raise Stopped(
            "git is not on the path, and every score stores a snapshot with it.\n"
            "Install it (Debian and Ubuntu: apt install git) and run this again."
        )
    place = Installation.of(root, releases)
    say(f"rebench-workbench: setting up in {root}")
    install(place, extra)
    return place


def _prepare(place: Installation, environment: str, options: list[str]) -> None:
    command = ["env", "prepare", environment, *_profile(options)]
    say(f"  {PROGRAM} {' '.join(command)}")
    done = subprocess.run([place.program(PROGRAM), *command], check=False, env=place.environment())
    if done.returncode != 0:
        code = Exit(done.returncode) if done.returncode in set(Exit) else Exit.PREPARE
        raise Stopped(f"Preparing {environment} failed; what went wrong stands above.", code)


def _profile(options: list[str]) -> list[str]:
    """The session's profile decides which files are prepared."""
    for option, following in zip(options, [*options[1:], ""], strict=True):
        if option.startswith("--profile="):
            return [option]
        if option == "--profile" and following:
            return [option, following]
    return []
