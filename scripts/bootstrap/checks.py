"""Everything a change must pass, in one place: format, lint, types, import contracts, tests."""

import os
import subprocess
import time
from pathlib import Path

from scripts.bootstrap.pip import child_environment
from scripts.bootstrap.talk import Exit, Talk

NEVER_HERE = "not gpu and not benchmark"
NO_TESTS_COLLECTED = 5

STATIC: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("ruff", "format", "--check", "--quiet", ".")),
    ("lint", ("ruff", "check", "--quiet", ".")),
    ("types", ("mypy",)),
    ("imports", ("lint-imports",)),
)


def run_all(root: Path, bin_folder: Path, talk: Talk, *, slow: bool) -> Exit:
    """Run every check even when one fails; pytest comes last so that its closing line does too."""
    verdicts = [_static(root, bin_folder, talk, name, command) for name, command in STATIC]
    failed = [name for (name, _), good in zip(STATIC, verdicts, strict=True) if not good]
    if failed:
        talk.line(f"  FAILED before the tests: {', '.join(failed)}. The tests run all the same.")
    wanted = NEVER_HERE if slow else f"{NEVER_HERE} and not slow"
    tests = [
        run_pytest(root, bin_folder, ["-m", f"({wanted}) and serial"]),
        run_pytest(root, bin_folder, ["-m", f"({wanted}) and not serial", *_workers()]),
    ]
    return Exit.OK if not failed and all(code in {0, NO_TESTS_COLLECTED} for code in tests) else Exit.FAILED


def run_pytest(root: Path, bin_folder: Path, arguments: list[str]) -> int:
    command = [str(bin_folder / "python"), "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=root, check=False, env=_environment(bin_folder)).returncode


def _static(root: Path, bin_folder: Path, talk: Talk, name: str, command: tuple[str, ...]) -> bool:
    began = time.monotonic()
    done = subprocess.run(
        [str(bin_folder / command[0]), *command[1:]],
        cwd=root,
        check=False,
        env=_environment(bin_folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    good = done.returncode == 0
    if not good:
        talk.line(done.stdout.rstrip())
    talk.line(
        f"  {name}: {'ok' if good else 'FAILED'}, {time.monotonic() - began:.0f} s  ({' '.join(command)})"
    )
    return good


def _workers() -> list[str]:
    """Two test processes where there are two cores; more would disturb what measures."""
    return ["-n", "2", "--dist", "loadfile"] if (os.cpu_count() or 1) >= 2 else []


def _environment(bin_folder: Path) -> dict[str, str]:
    environment = child_environment()
    environment["PATH"] = f"{bin_folder}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return environment
