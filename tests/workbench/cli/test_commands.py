"""What holds for every command: examples, documentation, light imports, codes, colours, completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sessions.clients.protocol import PARTICIPANT_METHODS, PROCTOR_METHODS, Fault
from tests.workbench.cli.conftest import Run
from workbench.cli.command import Command, LazyGroup
from workbench.cli.exits import Exit
from workbench.cli.reference import VARIABLES, leaves, page
from workbench.cli.root import PROGRAM, root
from workbench.headless.methods import METHODS

ROOT = Path(__file__).parents[3]
COMMANDS = dict(leaves(root))
HEAVY = ("torch", "transformers", "datasets", "textual", "numpy", "git", "pynvml")


def _groups(group: LazyGroup) -> list[LazyGroup]:
    inner = [group.get_command(click.Context(group), name) for name in group.entries]
    return [
        group,
        *(found for command in inner if isinstance(command, LazyGroup) for found in _groups(command)),
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_that_begins_with_itself(name: str, run: Run) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    assert any(f"{PROGRAM} {name}" in example for example in command.examples)
    outcome = run(*name.split(), "--help")
    assert outcome.code == Exit.OK
    assert command.examples[0] in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help or isinstance(parameter.type, click.Choice), f"{name} {parameter.opts}"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for group in _groups(root):
        for name, entry in group.entries.items():
            command = group.get_command(click.Context(group), name)
            assert command is not None
            assert entry.help == command.get_short_help_str(200), name


def test_the_page_of_commands_is_up_to_date() -> None:
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m workbench.cli.reference > docs/commands.md"


def test_every_exit_code_is_documented_where_scripts_look() -> None:
    table = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == set(Exit)


def test_every_variable_the_code_reads_is_documented() -> None:
    read = set()
    for package in ("workbench", "sessions", "environments"):
        for path in (ROOT / package).rglob("*.py"):
            read |= set(re.findall(r'"(REBENCH_[A-Z_]*[A-Z])"', path.read_text(encoding="utf-8")))
    undocumented = read - set(VARIABLES)
    assert not undocumented, f"add to workbench/cli/reference.py: {undocumented}"


def test_every_method_of_both_protocols_is_documented() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    for name in {*PARTICIPANT_METHODS, *PROCTOR_METHODS, *METHODS, "rpc.discover"}:
        assert f"`{name}`" in text, name
    for fault in Fault:
        assert f"| {int(fault)} |" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["status", "--help"],
        ["score", "--help"],
        ["history"],
        ["time"],
        ["note", "x"],
        ["status"],
        ["sessions"],
    ],
)
def test_quick_commands_import_nothing_heavy(arguments: list[str], home: Path) -> None:
    code = (
        "import sys; from workbench.cli import run\n"
        f"run({arguments!r})\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("HEAVY []\n"), done.stdout


@pytest.mark.parametrize(
    "module", ["workbench.tui.app", "workbench.tui.replay.screen", "workbench.headless.server"]
)
def test_neither_screen_nor_server_imports_torch(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'torch', 'transformers', 'datasets', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_asking_a_live_host_imports_neither_msgspec_nor_rich(run: Run, story, host_for) -> None:  # type: ignore[no-untyped-def]
    told = story().begin().score(1, 1.5)
    host_for(told.record)
    for arguments in (["status"], ["history"], ["time"], ["note", "x"]):
        code = (
            "import sys; from workbench.cli import run\n"
            f"code = run({arguments!r})\n"
            "print('CODE', int(code), sorted({'msgspec', 'rich', 'asyncio', 'sessions.record.state'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith("CODE 0 []\n"), done.stdout


def test_an_unknown_command_suggests_the_nearest_and_lists_all(run: Run) -> None:
    outcome = run("statsu")
    assert outcome.code == Exit.USAGE
    assert "Did you mean 'status'?" in outcome.err
    assert "replay" in outcome.err
    assert run("env", "lst").code == Exit.USAGE


def test_an_unknown_option_suggests_the_nearest(run: Run) -> None:
    outcome = run("status", "--jsn")
    assert outcome.code == Exit.USAGE
    assert "--json" in outcome.err


def test_an_unknown_session_lists_those_there_are(run: Run, story) -> None:  # type: ignore[no-untyped-def]
    told = story()
    outcome = run("status", "--session", "s-nope")
    assert outcome.code == Exit.USAGE
    assert told.record.session in outcome.err


def test_without_arguments_the_help_is_shown(run: Run) -> None:
    outcome = run()
    assert outcome.code == Exit.USAGE
    assert "Take part:" in outcome.err


def test_a_bug_ends_with_70_and_a_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_session: str | None) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("workbench.cli.reading.meant", broken)
    outcome = run("status")
    assert outcome.code == Exit.BUG
    assert "ZeroDivisionError" in outcome.err
    assert outcome.out == ""


def test_ctrl_c_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_session: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.cli.reading.meant", interrupted)
    assert run("status").code == Exit.INTERRUPTED


def test_a_reader_that_goes_away_is_no_failure(home: Path) -> None:
    script = f'{sys.executable} -m workbench.cli --help | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
    assert done.stderr == ""


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_colour_follows_the_two_variables(variable: str, story, host_for) -> None:  # type: ignore[no-untyped-def]
    told = story().begin()
    host_for(told.record)
    done = subprocess.run(
        ["script", "-qec", f"{sys.executable} -m workbench.cli status", "/dev/null"] if variable == "NO_COLOR"
        else [sys.executable, "-m", "workbench.cli", "status"],
        cwd=ROOT, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, env={**os.environ, variable: "1"},
    )  # fmt: skip
    assert "running" in done.stdout
    assert ("\x1b[" in done.stdout) == (variable == "FORCE_COLOR")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_for_three_shells(shell: str, run: Run) -> None:
    outcome = run("completion", shell)
    assert outcome.code == Exit.OK
    assert f"_REBENCH_WORKBENCH_COMPLETE={shell}_complete" in outcome.out


def test_completion_knows_commands_sessions_and_environments(story, home: Path) -> None:  # type: ignore[no-untyped-def]
    told = story()

    def complete(words: str) -> str:
        variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        done = subprocess.run(
            [sys.executable, "-m", "workbench.cli"], cwd=ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, **variables, "_REBENCH_WORKBENCH_COMPLETE": "bash_complete"},
        )  # fmt: skip
        return done.stdout

    assert "plain,status" in complete("rebench-workbench stat")
    assert told.record.session in complete("rebench-workbench status -s s-")
    assert "restricted_mlm" in complete("rebench-workbench start restr")


def test_version_is_the_packages(run: Run) -> None:
    from workbench import __version__

    assert run("--version").out == f"{PROGRAM} {__version__}\n"
