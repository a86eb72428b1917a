"""Commands for agents: headless and run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from sessions.record.store import Store
from workbench.cli.command import Command
from workbench.cli.exits import Exit
from workbench.cli.reach import meant
from workbench.cli.start import complete_environments, environment_folders_option
from workbench.ink.text import literal


def wish_options(function: Any) -> Any:
    """Add the options that say what session an agent gets."""
    options = (
        click.option("--profile", metavar="NAME", help="The environment's size; else what this machine can run."),
        click.option("--hours", metavar="HOURS", type=click.FloatRange(min=0, min_open=True), help="Time budget; else the profile's."),
        click.option("--minutes", metavar="MINUTES", type=click.FloatRange(min=0, min_open=True), help="In minutes; adds to --hours."),
        click.option("--workdir", type=click.Path(path_type=Path), help="Work folder, new or empty."),
        click.option("--participant", metavar="NAME", default="agent", show_default=True, help="Name of the agent."),
        click.option("--variant", type=click.Choice(("main", "hidden_score")), default="main", show_default=True),
        click.option("--scoring-time", type=click.Choice(("counted", "excluded")), default="counted",
                     show_default=True),
        click.option("--isolation", type=click.Choice(("user", "sandbox", "none")),
                     help="Else the strongest that works here."),
        click.option("--user", "participant_user", metavar="ACCOUNT", help="The account of its commands."),
        environment_folders_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def wish_of(environment: str, given: dict[str, Any]) -> Any:
    """Return what the options ask for."""
    from sessions.record.events import Breaks, Isolation, ScoringTime, SessionPolicy, Variant
    from workbench.launch import agent_wish

    budget = round((given["hours"] or 0.0) * 3_600_000 + (given["minutes"] or 0.0) * 60_000) or None
    policy = SessionPolicy(
        budget_ms=budget or 0,
        breaks=Breaks.PROCTOR,
        scoring_time=ScoringTime(given["scoring_time"]),
        variant=Variant(given["variant"]),
    )
    return agent_wish(
        environment,
        profile=given["profile"],
        budget_ms=budget,
        work_tree=None if given["workdir"] is None else given["workdir"].expanduser().absolute(),
        participant=given["participant"],
        policy=policy,
        isolation=None if given["isolation"] is None else Isolation(given["isolation"]),
        participant_user=given["participant_user"],
        environment_folders=given["environment_folders"],
    )


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench headless restricted_mlm --minutes 30",
        """echo '{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}' | rebench-workbench headless restricted_mlm""",
        "rebench-workbench headless restricted_mlm --mcp         # a Model Context Protocol server",
        "rebench-workbench headless --resume s-7f3a9c",
    ),
)
@click.argument("environment", required=False, shell_complete=complete_environments)
@wish_options
@click.option(
    "--mcp", "as_mcp", is_flag=True, help="Speak the Model Context Protocol instead of plain JSON-RPC."
)
@click.option("--resume", "resume_id", metavar="ID", help="Take up a session that is going on.")
@click.option("--on-exit", type=click.Choice(("leave", "submit")), default="leave", show_default=True,
              help="What becomes of the session when the agent hangs up.")  # fmt: skip
def headless(
    environment: str | None, as_mcp: bool, resume_id: str | None, on_exit: str, **given: Any
) -> Exit:
    """Serve an environment to an agent on standard input and output."""
    record = None if resume_id is None else meant(resume_id)
    wish = wish_of(environment or "", given)
    if as_mcp:
        from workbench.headless.mcp_server import serve_mcp as serve
    else:
        from workbench.headless.stdio import serve_stdio as serve
    asyncio.run(serve(wish, record, Store(), submit_on_exit=on_exit == "submit"))
    return Exit.OK


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    examples=(
        "rebench-workbench run restricted_mlm --minutes 30 --agent 'python my_agent.py'",
        "rebench-workbench run restricted_mlm --agent ./scaffold.sh --json > result.json",
    ),
)
@click.argument("environment", shell_complete=complete_environments)
@wish_options
@click.option(
    "--agent", "command", required=True, metavar="COMMAND", help="A shell command; runs in the work folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(environment: str, command: str, as_json: bool, **given: Any) -> Exit:
    """Run an agent's command in a session, and end it at the deadline."""
    from workbench.cli.panel import panel
    from workbench.cli.reading import print_json
    from workbench.headless.agent import run_agent

    result = asyncio.run(run_agent(wish_of(environment, given), command, Store(), say=_say))
    if as_json:
        print_json(result)
    else:
        click.echo(panel(result["status"]))
    return Exit.OK


def _say(text: str) -> None:
    click.echo(literal(text), err=True)
