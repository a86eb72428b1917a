"""The command `rebench-workbench` and the table of all its commands."""

from __future__ import annotations

import os

import click

from workbench import __version__
from workbench.cli.command import Entry, LazyGroup

PROGRAM = "rebench-workbench"

_TAKE_PART, _PROCTOR, _AGENT, _AUTHOR, _SHELL = (
    "Take part",
    "Proctor and review",
    "Agents",
    "Environments",
    "This machine",
)

ENTRIES = {
    "start": Entry(_TAKE_PART, "workbench.cli.start:start", "Open a session of an environment."),
    "attach": Entry(_TAKE_PART, "workbench.cli.start:attach", "Open the screen of a session that is going on."),
    "begin": Entry(_TAKE_PART, "workbench.cli.start:begin", "Give consent and start the clock, without the screen."),
    "brief": Entry(_TAKE_PART, "workbench.cli.reading:brief", "Show the task; only once the clock has started."),
    "status": Entry(_TAKE_PART, "workbench.cli.reading:status", "Show time, scores and health of a session."),
    "time": Entry(_TAKE_PART, "workbench.cli.reading:time", "Print how much time is left."),
    "check": Entry(_TAKE_PART, "workbench.cli.working:check", "Say whether the work would be accepted; no score."),
    "score": Entry(_TAKE_PART, "workbench.cli.working:score", "Snapshot the work and score the snapshot."),
    "history": Entry(_TAKE_PART, "workbench.cli.reading:history", "List every score of a session."),
    "note": Entry(_TAKE_PART, "workbench.cli.working:note", "Write a note into the record; `-` reads it from standard input."),
    "pause": Entry(_TAKE_PART, "workbench.cli.working:pause", "Stop the clock, with a reason."),
    "resume": Entry(_TAKE_PART, "workbench.cli.working:resume", "Let the clock run on; starts it where it has not begun."),
    "shell": Entry(_TAKE_PART, "workbench.cli.working:shell", "Open a recorded shell in the work folder."),
    "diff": Entry(_TAKE_PART, "workbench.cli.changes:diff", "Show what changed between two snapshots, or since the last."),
    "submit": Entry(_TAKE_PART, "workbench.cli.working:submit", "Hand the work in and end the session."),
    "practice": Entry(
        _TAKE_PART,
        "workbench.cli.practice:practice",
        "Try each command once, in ten guided minutes that count for nothing.",
    ),
    "survey": Entry(_TAKE_PART, "workbench.cli.working:survey", "Answer the questions after a session."),
    "sessions": Entry(_PROCTOR, "workbench.cli.records:sessions", "List all sessions."),
    "watch": Entry(_PROCTOR, "workbench.cli.replay:watch", "Watch a live session without being able to touch it."),
    "replay": Entry(_PROCTOR, "workbench.cli.replay:replay", "Go through a session's record, moment by moment."),
    "verify": Entry(_PROCTOR, "workbench.cli.records:verify", "Recompute a record and say whether it holds."),
    "checkout": Entry(_PROCTOR, "workbench.cli.changes:checkout", "Restore a snapshot into a folder, byte for byte."),
    "recordings": Entry(_PROCTOR, "workbench.cli.recordings:recordings", "List a session's terminal recordings, or export one."),
    "report": Entry(_PROCTOR, "workbench.cli.records:report", "Write one self-contained HTML page about a session."),
    "review": Entry(_PROCTOR, "workbench.cli.reviews:review", "List a record's review, or add a comment or a verdict to it."),
    "rescore": Entry(_PROCTOR, "workbench.cli.reviews:rescore", "Score snapshots of a record again on this machine; the old scores stay."),
    "bundle": Entry(_PROCTOR, "workbench.cli.bundles:bundle", "Write a session's record into one file, which opens and verifies anywhere."),
    "import": Entry(_PROCTOR, "workbench.cli.bundles:import_", "Take a bundled record into this store, if it verifies."),
    "credit": Entry(_PROCTOR, "workbench.cli.proctoring:credit", "Give time back, or take it, with a reason on record."),
    "message": Entry(_PROCTOR, "workbench.cli.proctoring:message", "Send the participant a message."),
    "correct": Entry(_PROCTOR, "workbench.cli.proctoring:correct", "Remark that an event of the record is wrong."),
    "hold": Entry(_PROCTOR, "workbench.cli.proctoring:hold", "Stop a session's clock as its proctor."),
    "release": Entry(_PROCTOR, "workbench.cli.proctoring:release", "Let a session's clock run on as its proctor."),
    "end": Entry(_PROCTOR, "workbench.cli.proctoring:end", "End a session now."),
    "headless": Entry(_AGENT, "workbench.cli.agents:headless", "Serve an environment to an agent on standard input and output."),
    "run": Entry(_AGENT, "workbench.cli.agents:run", "Run an agent's command in a session, and end it at the deadline."),
    "env": Entry(_AUTHOR, "workbench.cli.environments:env", "Environments: list, show, check, prepare; make, calibrate and seal your own."),
    "doctor": Entry(_SHELL, "workbench.cli.doctor:doctor", "Look whether this machine is ready, and how to fix what is not."),
    "completion": Entry(_SHELL, "workbench.cli.completion:completion", "Print the completion script of a shell."),
}  # fmt: skip


def _colours(ctx: click.Context) -> None:
    """Honour NO_COLOR and FORCE_COLOR; otherwise click colours terminals alone."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    elif os.environ.get("FORCE_COLOR"):
        ctx.color = True


@click.command(
    cls=LazyGroup,
    entries=ENTRIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Measure people and agents on RE-Bench's research-engineering environments.

    `rebench-workbench start restricted_mlm` opens a session; `rebench-workbench COMMAND --help` shows a
    command with examples.
    """
    _colours(ctx)
