"""Everything a change must pass, in one place: format, lint, types, import contracts, tests."""

import os
import subprocess
import time

from scripts.bootstrap.installation import Installation
from scripts.bootstrap.talk import Exit, say

NEVER_HERE = "not gpu and not benchmark"
QUICK = f"{NEVER_HERE} and not slow and not cheats and not serial"
NO_TESTS_COLLECTED = 5

STATIC: tuple[tuple[str, ...], ...] = (
    ("ruff", "format", "--check", "--quiet", "."),
    ("ruff", "check", "--quiet", "."),
    ("mypy",),
    ("lint-imports",),
)


def run(place: Installation, arguments: list[str]) -> int:
    """Every check even when one fails, pytest last so that its closing line is; or pytest alone, as asked."""
    if arguments not in ([], ["--all"], ["--quick"]):
        return _pytest(place, *arguments)
    failed = [" ".join(command) for command in STATIC if not _passes(place, command)]
    if failed:
        say(f"  FAILED before the tests: {', '.join(failed)}. The tests run all the same.")
    if arguments == ["--quick"]:
        quick = _pytest(place, "--quick", "-m", QUICK, *_two_processes())
        return Exit.OK if not failed and quick == 0 else Exit.FAILED
    wanted = NEVER_HERE if arguments == ["--all"] else f"{NEVER_HERE} and not slow"
    serial = _pytest(place, "-m", f"({wanted}) and serial")
    rest = _pytest(place, "-m", f"({wanted}) and not serial", *_two_processes())
    return Exit.OK if not failed and {serial, rest} <= {0, NO_TESTS_COLLECTED} else Exit.FAILED


def _passes(place: Installation, command: tuple[str, ...]) -> bool:
    began = time.monotonic()
    done = subprocess.run(
        [place.program(command[0]), *command[1:]],
        cwd=place.root,
        check=False,
        env=place.environment(),
        capture_output=True,
        text=True,
    )
    good = done.returncode == 0
    if not good:
        say(f"{done.stdout}{done.stderr}".rstrip())
    say(f"  {' '.join(command)}: {'ok' if good else 'FAILED'}, {time.monotonic() - began:.0f} s")
    return good


def _pytest(place: Installation, *arguments: str) -> int:
    command = [place.program("python"), "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=place.root, check=False, env=place.environment()).returncode


def _two_processes() -> list[str]:
    """Two test processes where there are two cores; more would disturb what measures."""
    return ["-n", "2", "--dist", "loadfile"] if (os.cpu_count() or 1) >= 2 else []
