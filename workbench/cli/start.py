"""Commands that open a session and its screen: start, attach, begin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sessions.record.store import Record, Store
from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.proctoring import DurationType
from workbench.cli.reach import dial, is_closed, meant, session_argument, session_option
from workbench.cli.reading import json_option, print_json
from workbench.cli.text import fold
from workbench.ink.figures import duration
from workbench.ink.text import literal


def complete_environments(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from environments.registry import all_found

    return [found.spec.slug for found in all_found() if found.spec.slug.startswith(incomplete)]


environment_folders_option = click.option(
    "--env-folder",
    "environment_folders",
    multiple=True,
    envvar="REBENCH_ENVIRONMENTS",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with environments that are not installed; also $REBENCH_ENVIRONMENTS.",
)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench start restricted_mlm",
        "rebench-workbench start restricted_mlm --profile cpu --minutes 30 --workdir ~/mlm",
        "rebench-workbench start restricted_mlm --detach --yes      # in a script: no questions, no screen",
        "rebench-workbench start --resume s-7f3a9c",
    ),
)
@click.argument("environment", required=False, shell_complete=complete_environments)
@click.option(
    "--profile",
    metavar="NAME",
    help="The environment's size: cpu, gpu, paper; else what this machine can run.",
)
@click.option(
    "--hours",
    metavar="HOURS",
    type=click.FloatRange(min=0, min_open=True),
    help="Time budget; else the profile's.",
)
@click.option(
    "--minutes",
    metavar="MINUTES",
    type=click.FloatRange(min=0, min_open=True),
    help="Time budget in minutes; adds to --hours.",
)
@click.option(
    "--workdir", type=click.Path(path_type=Path), help="Work folder, new or empty; else ./ENVIRONMENT."
)
@click.option("--participant", metavar="NAME", help="Who takes part; else the login name.")
@click.option(
    "--variant",
    type=click.Choice(("main", "hidden_score")),
    default="main",
    show_default=True,
    help="hidden_score: scores are logged and never shown to the participant.",
)
@click.option(
    "--breaks",
    type=click.Choice(("allowed", "proctor", "none")),
    default="allowed",
    show_default=True,
    help="Who may stop the clock for a break.",
)
@click.option(
    "--scoring-time",
    type=click.Choice(("counted", "excluded")),
    default="counted",
    show_default=True,
    help="Whether the clock runs while a score is computed.",
)
@click.option(
    "--interruptions",
    type=click.Choice(("auto", "counted", "credited")),
    default="auto",
    show_default=True,
    help="Whose time an interruption is; auto: a reboot is given back, anything else counts.",
)
@click.option("--snapshot-every", type=DurationType(), default="10m", show_default=True, help="0 for never.")
@click.option(
    "--isolation", type=click.Choice(("user", "sandbox", "none")), help="Else the strongest that works here."
)
@click.option(
    "--user",
    "participant_user",
    metavar="ACCOUNT",
    help="The account of the participant's shells, for isolation `user`.",
)
@click.option(
    "--log-copy",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the log there too as it grows, e.g. another disk.",
)
@environment_folders_option
@click.option("--detach", is_flag=True, help="Open no screen; print what to do next.")
@click.option("--yes", is_flag=True, help="Agree to the rules and, with --detach, start the clock.")
@click.option("--tmux", "in_tmux", is_flag=True, help="In tmux: the workbench above, a recorded shell below.")
@click.option(
    "--resume", "resume_id", metavar="ID", help="Open the screen of a session that is going on instead."
)
@json_option  # fmt: skip
def start(environment: str | None, resume_id: str | None, detach: bool, yes: bool, in_tmux: bool, as_json: bool,
          **wished: Any) -> Exit:  # fmt: skip
    """Open a session of an environment."""
    if resume_id:
        return _show(meant(resume_id), in_tmux=in_tmux)
    if environment is None:
        raise click.UsageError("which environment? `rebench-workbench env list` shows them")
    record = open_session(environment, wished)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if on_terminal and not detach and not as_json:
        return _show(record, in_tmux=in_tmux)
    if yes:
        _begin(record, yes=True)
    _say_what_next(record, as_json=as_json, begun=yes)
    return Exit.OK


DEFAULTS: dict[str, Any] = {
    "profile": None, "hours": None, "minutes": None, "workdir": None, "participant": None, "variant": "main",
    "breaks": "allowed", "scoring_time": "counted", "interruptions": "auto", "snapshot_every": 600_000,
    "isolation": None, "participant_user": None, "environment_folders": (), "log_copy": None,
}  # fmt: skip


def open_session(environment: str, wished: dict[str, Any]) -> Record:
    """Open what the options ask for, telling on standard error what is done; options may be left out."""
    from workbench import launch

    store = Store()
    planned = launch.plan(_wish(environment, wished), store)
    _say_plan(planned)
    if not launch.is_prepared(planned, store.home):
        _prepare(planned, store.home)
    return launch.open_planned(planned, store)


def _wish(environment: str, wished: dict[str, Any]) -> Any:
    from sessions.record.events import (
        Breaks,
        Interruptions,
        Isolation,
        ScoringTime,
        SessionPolicy,
        Variant,
    )
    from workbench.cli.reach import proctor_name
    from workbench.launch import Wish

    wished = DEFAULTS | wished
    hours, minutes = wished["hours"] or 0.0, wished["minutes"] or 0.0
    budget = round(hours * 3_600_000 + minutes * 60_000) or None
    policy = SessionPolicy(
        budget_ms=budget or 0,
        breaks=Breaks(wished["breaks"]),
        scoring_time=ScoringTime(wished["scoring_time"]),
        interruptions=Interruptions(wished["interruptions"]),
        variant=Variant(wished["variant"]),
        snapshot_every_ms=wished["snapshot_every"] or None,
    )
    return Wish(
        environment=environment,
        profile=wished["profile"],
        budget_ms=budget,
        work_tree=None if wished["workdir"] is None else wished["workdir"].expanduser().absolute(),
        participant=wished["participant"] or proctor_name(),
        policy=policy,
        isolation=None if wished["isolation"] is None else Isolation(wished["isolation"]),
        participant_user=wished["participant_user"],
        log_copies=None if wished["log_copy"] is None else wished["log_copy"].expanduser().absolute(),
        environment_folders=wished["environment_folders"],
    )


def _say_plan(planned: Any) -> None:
    """Say on standard error what is about to be opened, on what, and what to mind about this machine."""
    from workbench.preflight.findings import Judgement, judge

    spec, machine = planned.found.spec, planned.machine
    profile = spec.profile(planned.profile)
    click.echo(
        f"{click.style(literal(spec.title), bold=True)} · profile {literal(planned.profile)}", err=True
    )
    click.echo(fold(f"  {literal(profile.summary)}", 2, err=True), err=True)
    gpus = ", ".join(literal(gpu.name) for gpu in machine.gpus) or "no GPU"
    click.echo(
        f"  time {duration(planned.policy.budget_ms)} · {machine.cpus} cores · {machine.memory_bytes / 1e9:.0f} GB · "
        f"{gpus} · {machine.disk_free / 1e9:.0f} GB of disk free",
        err=True,
    )
    for finding in judge(machine):
        about = finding.about.split()[0]
        matters = about in {"isolation", "disk", "machine", "git"} or (about == "gpu" and profile.needs.gpus)
        if finding.judgement is not Judgement.GOOD and matters:
            text = f"  ▲ {finding.about}: {literal(finding.found)}; {finding.fix}"
            click.secho(fold(text, 4, err=True), fg="yellow", err=True)


def _prepare(planned: Any, home: Path) -> None:
    from workbench import launch
    from workbench.cli.preparing import shown_progress

    with shown_progress(f"preparing {planned.found.spec.slug} ({planned.profile})") as report:
        launch.prepare(planned, home, report)


def _say_what_next(record: Record, *, as_json: bool, begun: bool) -> None:
    header = record.header()
    if as_json:
        print_json(
            {
                "session": record.session,
                "environment": header["environment"]["slug"],
                "profile": header["profile"],
                "work_tree": header["work_tree"],
                "budget_ms": header["policy"]["budget_ms"],
                "isolation": header["isolation"]["level"],
                "begun": begun,
            }
        )
        return
    click.echo(record.session)
    here = literal(header["work_tree"])
    click.echo(f"\nThe session {record.session} is open in {here}.", err=True)
    if not begun:
        click.echo("Its clock has not started. Next, in that folder:", err=True)
        click.echo("  rebench-workbench begin      agree to the rules and start the clock", err=True)
    else:
        click.echo("Its clock runs. In that folder:", err=True)
    click.echo("  rebench-workbench brief      read the task", err=True)
    click.echo("  rebench-workbench score      score what is there", err=True)
    click.echo("  rebench-workbench attach     open the screen", err=True)


@click.command(cls=Command, examples=("rebench-workbench attach", "rebench-workbench attach s-7f3a9c"))
@session_argument
@click.option("--tmux", "in_tmux", is_flag=True, help="In tmux: the workbench above, a recorded shell below.")
def attach(session: str | None, in_tmux: bool) -> Exit:
    """Open the screen of a session that is going on."""
    return _show(meant(session), in_tmux=in_tmux)


def _show(record: Record, *, in_tmux: bool) -> Exit:
    """Run the screen until it is left; leaving it only detaches."""
    if is_closed(record):
        raise Stop(
            f"session {record.session} is closed; `rebench-workbench replay {record.session}` shows it",
            Exit.REFUSED,
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Stop("the screen needs a terminal; `rebench-workbench status` does not", Exit.USAGE)
    if in_tmux:
        from workbench.cli.tmux import open_in_tmux

        return open_in_tmux(record)
    from workbench.cli.screen import run_live

    run_live(record)
    if not is_closed(record):
        click.echo(
            fold(
                f"detached; {record.session} goes on: `rebench-workbench attach` opens the screen again",
                err=True,
            ),
            err=True,
        )
    return Exit.OK


@click.command(
    cls=Command,
    examples=("rebench-workbench begin", "rebench-workbench begin --rules", "rebench-workbench begin --yes"),
)
@session_option
@click.option("--yes", is_flag=True, help="Agree to the rules without being asked.")
@click.option("--rules", is_flag=True, help="Only print the rules.")
def begin(session: str | None, yes: bool, rules: bool) -> None:
    """Give consent and start the clock, without the screen."""
    if rules:
        from workbench.cli.consent import rules_text

        click.echo(rules_text().rstrip("\n"))
        return
    record = meant(session)
    _begin(record, yes=yes)
    click.echo("the clock runs; `rebench-workbench brief` shows the task", err=True)


def _begin(record: Record, *, yes: bool) -> None:
    from workbench.cli.consent import begin_session

    with dial(record) as client:
        if client.request("status")["phase"] not in {"opened", "ready"}:
            raise Stop(
                f"the clock of {record.session} was started before; `rebench-workbench status` says how it stands",
                Exit.REFUSED,
            )
        begin_session(client, yes=yes)
