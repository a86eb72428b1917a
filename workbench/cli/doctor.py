"""The command `doctor`."""

from __future__ import annotations

import click

from workbench.cli.command import Command
from workbench.cli.exits import Exit
from workbench.cli.reading import json_option, print_json
from workbench.cli.text import fold
from workbench.ink.text import literal

_MARKS = {"good": ("✔", "green"), "mind": ("▲", "yellow"), "bad": ("✖", "red")}


@click.command(cls=Command, examples=("rebench-workbench doctor", "rebench-workbench doctor --json"))
@json_option
def doctor(as_json: bool) -> Exit:
    """Look whether this machine is ready, and how to fix what is not."""
    import msgspec

    from environments.machine.home import home_folder
    from workbench.preflight.findings import Judgement, judge
    from workbench.preflight.machine import examine

    findings = judge(examine(home_folder()))
    bad = any(finding.judgement is Judgement.BAD for finding in findings)
    if as_json:
        print_json({"ready": not bad, "findings": msgspec.to_builtins(findings)})
    else:
        widest = max(len(finding.about) for finding in findings)
        for finding in findings:
            mark, colour = _MARKS[finding.judgement]
            click.echo(
                f"{click.style(mark, fg=colour)} {finding.about.ljust(widest)}  {literal(finding.found)}"
            )
            if finding.fix and finding.judgement is not Judgement.GOOD:
                click.echo(
                    fold(f"  {' ' * widest}  {click.style('→ ' + finding.fix, fg=colour)}", widest + 6)
                )
        click.echo("not ready: fix what is marked ✖" if bad else "ready to hold sessions", err=True)
    return Exit.ENVIRONMENT if bad else Exit.OK
