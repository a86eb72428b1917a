"""The group `env`: list, show, check and prepare environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from environments.machine.home import home_folder
from workbench.cli.command import Command, Entry, LazyGroup
from workbench.cli.exits import Exit
from workbench.cli.reading import json_option, print_json
from workbench.cli.start import complete_environments, environment_folders_option
from workbench.cli.text import fold, table
from workbench.ink.figures import figure, size
from workbench.ink.text import literal

_HERE = "workbench.cli.environments"
_SECTION = "Commands"
_AUTHORING = "workbench.cli.authoring"
_AUTHORS = "For authors"
ENTRIES = {
    "list": Entry(
        _SECTION, f"{_HERE}:list_environments", "List all environments and how far they are prepared."
    ),
    "show": Entry(_SECTION, f"{_HERE}:show", "Show an environment's profiles, needs, limits and anchors."),
    "check": Entry(
        _SECTION, f"{_HERE}:check", "Look whether an environment is whole and this machine can run it."
    ),
    "prepare": Entry(
        _SECTION, f"{_HERE}:prepare", "Make or fetch an environment's data; resumes what was begun."
    ),
    "new": Entry(_AUTHORS, f"{_AUTHORING}:new", "Write a small whole environment to start from."),
    "calibrate": Entry(_AUTHORS, f"{_AUTHORING}:calibrate", "Measure the anchors here, with their spread."),
    "prove": Entry(
        _AUTHORS, f"{_AUTHORING}:prove", "Show that the starter scores about 0 and the reference about 1."
    ),
    "seal": Entry(_AUTHORS, f"{_AUTHORING}:seal", "Encrypt a folder of answers or solutions."),
    "unseal": Entry(_AUTHORS, f"{_AUTHORING}:unseal", "Open a sealed archive."),
}


@click.command(cls=LazyGroup, entries=ENTRIES)
def env() -> None:
    """Environments: list, show, check, prepare; make, calibrate and seal your own."""


environment_argument = click.argument("environment", shell_complete=complete_environments)
profile_option = click.option(
    "--profile", metavar="NAME", help="The profile; else the one this machine can run."
)


@click.command("list", cls=Command, examples=("rebench-workbench env list",))
@environment_folders_option
@json_option
def list_environments(environment_folders: tuple[Path, ...], as_json: bool) -> None:
    """List all environments and how far they are prepared."""
    from environments.registry import all_found

    found = [_summary(one) for one in all_found(environment_folders)]
    if as_json:
        print_json({"environments": found})
        return
    for one in found:
        click.echo(f"{click.style(one['slug'], bold=True)}  {literal(one['title'])}")
        click.echo(fold(f"  {literal(one['summary'])}", 2))
        states = "  ".join(f"{name} ({_in_words(state)})" for name, state in one["profiles"].items())
        click.secho(f"  {one['direction']} is better · {states}", dim=True)


def _in_words(state: str) -> str:
    return {"absent": "not prepared", "partial": "begun", "ready": "prepared"}.get(state, state)


def _summary(found: Any) -> dict[str, Any]:
    from environments import assets

    spec = found.spec
    states = {
        name: assets.state(assets.folders_for(spec, name, home_folder())).value for name in spec.profiles
    }
    return {
        "slug": spec.slug,
        "title": spec.title,
        "summary": spec.summary,
        "version": spec.version,
        "direction": spec.direction.value,
        "raw_label": spec.raw_label,
        "folder": str(found.folder),
        "profiles": states,
    }


@click.command(cls=Command, examples=("rebench-workbench env show restricted_mlm",))
@environment_argument
@environment_folders_option
@json_option
def show(environment: str, environment_folders: tuple[Path, ...], as_json: bool) -> None:
    """Show an environment's profiles, needs, limits and anchors."""
    import msgspec

    from environments.registry import find

    found = find(environment, environment_folders)
    spec = found.spec
    if as_json:
        print_json(msgspec.to_builtins(spec) | {"folder": str(found.folder)})
        return
    click.echo(f"{click.style(literal(spec.title), bold=True)} ({spec.slug} {spec.version})")
    click.echo(literal(spec.summary))
    click.echo(
        f"score: {literal(spec.raw_label)}, {spec.direction} is better, the {spec.counting} valid one counts"
    )
    click.echo(f"hand in: {', '.join(map(literal, spec.deliverables))}\n")
    click.echo(
        table(("profile", "hours", "needs", "score limit", "prepared"), _profile_rows(found), right="hours")
    )
    for name, profile in spec.profiles.items():
        click.echo(f"\n{click.style(name, bold=True)}: {literal(profile.summary)}")
        if not profile.anchors:
            click.echo("  no anchors yet: scores stay raw")
        for anchors in profile.anchors:
            spread = "" if anchors.start_spread is None else f" (spread {anchors.start_spread:.4f})"
            where = (
                f"{literal(anchors.source)}, {literal(anchors.hardware)}, {anchors.measured_on or 'undated'}"
            )
            click.echo(
                f"  start {figure(anchors.start)}{spread}, reference {figure(anchors.reference)}  ({where})"
            )


def _profile_rows(found: Any) -> list[tuple[str, ...]]:
    states = _summary(found)["profiles"]
    return [
        (
            name,
            f"{profile.hours:g}",
            _needs(profile.needs),
            f"{profile.limits.score_seconds:g} s",
            _in_words(states[name]),
        )
        for name, profile in found.spec.profiles.items()
    ]


def _needs(needs: Any) -> str:
    parts = [f"{needs.cpus} cores", f"{needs.memory_gb:g} GB", f"{needs.disk_gb:g} GB disk"]
    if needs.gpus:
        number = f"{needs.gpus} GPU or more" if needs.all_gpus else f"{needs.gpus} GPU"
        parts.append(number + (f" of {needs.gpu_memory_gb:g} GB" if needs.gpu_memory_gb else ""))
    if needs.network:
        parts.append("network")
    return ", ".join((*parts, *needs.programs))


@click.command(cls=Command, examples=("rebench-workbench env check restricted_mlm --profile cpu",))
@environment_argument
@profile_option
@environment_folders_option
@json_option
def check(
    environment: str, profile: str | None, environment_folders: tuple[Path, ...], as_json: bool
) -> Exit:
    """Look whether an environment is whole and this machine can run it."""
    import msgspec

    from workbench.preflight.environment import inspect

    answer = inspect(environment, profile, environment_folders, home_folder())
    if as_json:
        print_json(msgspec.to_builtins(answer) | {"good": answer.good})
    else:
        for finding in answer.findings:
            mark = click.style("✔", fg="green") if finding.good else click.style("✖", fg="red")
            click.echo(f"{mark} {finding.about}  {literal(finding.found)}")
    return Exit.OK if answer.good else Exit.ENVIRONMENT


@click.command(cls=Command, examples=("rebench-workbench env prepare restricted_mlm --profile cpu",))
@environment_argument
@profile_option
@environment_folders_option
@json_option
def prepare(
    environment: str, profile: str | None, environment_folders: tuple[Path, ...], as_json: bool
) -> None:
    """Make or fetch an environment's data; resumes what was begun."""
    from environments.invoke import Action
    from workbench.cli.preparing import shown_progress
    from workbench.preflight.environment import chosen
    from workbench.preflight.invoking import invoke

    found, name = chosen(environment, profile, environment_folders, home_folder())
    with shown_progress(f"preparing {environment} ({name})") as report:
        made = invoke(
            Action.PREPARE,
            found.spec.slug,
            name,
            home=home_folder(),
            folder=found.outside,
            on_progress=report,
        )
    if as_json:
        print_json(made)
    else:
        click.echo(f"{made['files']} files, {size(made['bytes'])}, {made['seconds']:.1f} s")
        click.echo(f"public: {literal(str(made['public']))}", err=True)
