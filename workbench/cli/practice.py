"""The command `practice`: ten minutes in which each command is tried once, on a real session that counts for nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click

from sessions.record.store import SESSION_VARIABLE, Record
from workbench.cli.command import Command
from workbench.cli.exits import Exit
from workbench.cli.reach import dial, is_closed
from workbench.cli.start import complete_environments, environment_folders_option
from workbench.cli.text import fold

MINUTES = 10


class Step(NamedTuple):
    """One thing to try."""

    word: str
    """The command that ends the step."""
    say: str
    type_this: str


STEPS = (
    Step("brief", "The task is shown only once the clock runs, so reading it is part of your time.", "brief"),
    Step("status", "Where do I stand? Time, scores, health. `status --line` is one line for a prompt.", "status"),
    Step("check", "Would my work be accepted? As often as you like; it never says a number.", "check"),
    Step("score", "A snapshot is taken and scored. You can go on working meanwhile.", 'score -m "as it came"'),
    Step("diff", "Change a file in another window, or here after an exclamation mark. What did I change?",
         "!echo '# tried' >> notes.txt    and then    diff"),
    Step("note", "A note stands in the record beside your scores, for you and for those who read it later.",
         'note "the first idea did not help"'),
    Step("pause", "A break stops the clock where the session allows breaks.", 'pause -m "coffee"'),
    Step("resume", "Nothing starts the clock again but you.", "resume"),
    Step("history", "Every score so far; the star marks the one that counts.", "history"),
    Step("time", "Only how much is left.", "time"),
    Step("submit", "At the deadline your folder is frozen and scored as it stands; submitting does that sooner.",
         "submit"),
    Step("survey", "A few questions close the session.", "survey"),
)  # fmt: skip


@click.command(
    cls=Command,
    examples=("rebench-workbench practice", "rebench-workbench practice rust_codecontests_inference"),
)
@click.argument("environment", default="restricted_mlm", shell_complete=complete_environments)
@click.option("--profile", metavar="NAME", default="cpu", show_default=True, help="The environment's size.")
@click.option(
    "--workdir",
    type=click.Path(path_type=Path),
    help="Work folder, new or empty; else ./practice-ENVIRONMENT.",
)
@environment_folders_option
def practice(
    environment: str, profile: str, workdir: Path | None, environment_folders: tuple[Path, ...]
) -> Exit:
    """Try each command once, in ten guided minutes that count for nothing."""
    folder = workdir or Path(f"practice-{environment}")  # ./ENVIRONMENT stays free for the real session
    record = _open(environment, profile, folder, environment_folders)
    os.environ[SESSION_VARIABLE] = record.session
    try:
        finished = Guide(record).run()
    except (KeyboardInterrupt, click.Abort):
        finished = False
    if not finished and not is_closed(record):
        with dial(record, proctor=True) as client:
            client.request("end", why="practice was left", by="practice")
    _say(
        f"\nThe record stays as {record.session}: `rebench-workbench replay {record.session}` shows it from the"
    )
    _say("proctor's side, with everything that was kept. A real session: `rebench-workbench start`.")
    return Exit.OK if finished else Exit.INTERRUPTED


def _say(text: str) -> None:
    click.echo(fold(text, err=True), err=True)


def _open(environment: str, profile: str, workdir: Path | None, folders: tuple[Path, ...]) -> Record:
    from workbench.cli.consent import begin_session
    from workbench.cli.start import open_session

    record = open_session(
        environment,
        {
            "profile": profile,
            "minutes": MINUTES,
            "workdir": workdir,
            "participant": "practice",
            "environment_folders": folders,
        },
    )
    with dial(record) as client:
        begin_session(client, yes=True)
    return record


class Guide:
    """Reads what is typed, runs it, and goes on when the step's command has worked."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._folder = record.header()["work_tree"]

    def run(self) -> bool:
        """Return whether the participant came to the end."""
        _say(
            f"\nYour work folder is {self._folder}. {MINUTES} minutes are on the clock; nothing here counts."
        )
        _say(
            "Type what stands after the arrow, or anything else: all commands work. `skip` goes on, `quit` leaves.\n"
        )
        return all(self._step(number, step) for number, step in enumerate(STEPS, 1))

    def _step(self, number: int, step: Step) -> bool:
        """Return False to leave."""
        _say(f"{click.style(f'{number}/{len(STEPS)}  {step.word}', bold=True)}  {step.say}")
        _say(f"  {click.style('→', fg='cyan')} {step.type_this}")
        while (typed := self._ask()) is not None:
            if typed == "quit":
                return False
            if typed == "skip" or (typed and self._do(typed) == step.word):
                _say("")
                return True
        return False

    @staticmethod
    def _ask() -> str | None:
        click.secho("practice> ", fg="cyan", nl=False, err=True)
        line = sys.stdin.readline()
        return line.strip() if line else None

    def _do(self, typed: str) -> str | None:
        """Run what was typed; returns the command's name where it worked."""
        if typed.startswith("!"):
            subprocess.run(typed[1:], shell=True, cwd=self._folder, check=False)  # noqa: S602  (the user's own words)
            return None
        try:
            words = shlex.split(typed)
        except ValueError as error:
            _say(f"{error}: put text with an apostrophe into double quotes")
            return None
        if words[:1] == ["rebench-workbench"]:
            words = words[1:]
        if not words:
            return None
        return words[0] if self._run(words) in {Exit.OK, Exit.NOT_ACCEPTED} else None

    @staticmethod
    def _run(words: list[str]) -> int:
        from workbench.cli import run

        return run(words)
