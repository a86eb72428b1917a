"""Commands for environment authors: env new, calibrate, prove, seal, unseal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from environments.machine.home import home_folder
from workbench.cli.command import Command
from workbench.cli.environments import environment_argument, profile_option
from workbench.cli.exits import Exit, Stop
from workbench.cli.preparing import shown_progress
from workbench.cli.reading import json_option, print_json
from workbench.cli.start import environment_folders_option
from workbench.ink.text import literal

if TYPE_CHECKING:
    from environments.calibrate import Workshop
    from environments.contract import Anchors


@contextmanager
def _workshop(environment: str, profile: str | None, folders: tuple[Path, ...]) -> Iterator[Workshop]:
    from environments.assets import folders_for
    from environments.calibrate import Workshop
    from environments.sealing import passphrase_from
    from workbench.preflight.environment import chosen

    home = home_folder()
    found, name = chosen(environment, profile, folders, home)
    workshop = Workshop(found, name, home, passphrase_from(os.environ))
    if (budget := workshop.profile.gateway) is None:
        yield workshop
        return
    from sessions.gateway.lent import lent_gateway
    from sessions.gateway.service import OwnModel

    own = OwnModel(found.spec.slug, name, folders_for(found.spec, name, home), found.outside)
    with lent_gateway(budget, own) as gateway:
        yield replace(workshop, lend=gateway.lend)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench env calibrate restricted_mlm --profile cpu --repeats 3",
        "rebench-workbench env calibrate restricted_mlm --hardware any --json",
    ),
)
@environment_argument
@profile_option
@environment_folders_option
@click.option(
    "--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Scores of each solution."
)
@click.option(
    "--hardware",
    metavar="CLASS",
    help="The class the anchors hold for, e.g. any; else the profile's on this machine.",
)
@json_option
def calibrate(
    environment: str,
    profile: str | None,
    environment_folders: tuple[Path, ...],
    repeats: int,
    hardware: str | None,
    as_json: bool,
) -> None:
    """Measure the anchors here, with their spread.

    Scores the starting and the reference solution in turn and prints what belongs in environment.toml.
    """
    from environments.calibrate import measure
    from workbench.preflight.hardware import hardware_here

    with (
        _workshop(environment, profile, environment_folders) as workshop,
        shown_progress(f"calibrating {workshop.found.spec.slug} ({workshop.profile_name})") as show,
    ):
        anchors = measure(
            workshop,
            repeats=repeats,
            hardware=hardware or hardware_here(workshop.profile),
            today=datetime.now(UTC).date(),
            report=lambda progress: show(progress.stage, progress.fraction),
        )
    if as_json:
        print_json(msgspec.to_builtins(anchors))
    else:
        click.echo(as_toml(workshop.profile_name, anchors))


def as_toml(profile: str, anchors: Anchors) -> str:
    """Return the anchors as they stand in environment.toml."""
    lines = [f"[[profiles.{profile}.anchors]]"]
    for name, value in msgspec.to_builtins(anchors).items():
        if value is None:
            continue
        lines.append(f"{name} = {msgspec.json.encode(value).decode()}")
    return "\n".join(lines)


@click.command(cls=Command, examples=("rebench-workbench env prove restricted_mlm --profile cpu",))
@environment_argument
@profile_option
@environment_folders_option
@json_option
def prove(
    environment: str, profile: str | None, environment_folders: tuple[Path, ...], as_json: bool
) -> Exit:
    """Show that the starter scores about 0 and the reference about 1."""
    from environments.calibrate import check_environment
    from workbench.preflight.hardware import hardware_here

    with (
        _workshop(environment, profile, environment_folders) as workshop,
        shown_progress(f"proving {workshop.found.spec.slug} ({workshop.profile_name})") as show,
    ):
        result = check_environment(
            workshop,
            hardware=hardware_here(workshop.profile),
            report=lambda progress: show(progress.stage, progress.fraction),
        )
    if as_json:
        findings = [
            {"name": f.name, "normalised": f.normalised, "raw": f.score.raw, "holds": f.holds}
            for f in result.findings
        ]
        print_json({"passed": result.passed, "findings": findings, "notes": result.notes})
    else:
        for line in (*(finding.line() for finding in result.findings), *result.notes):
            click.echo(literal(line))
    return Exit.OK if result.passed else Exit.ENVIRONMENT


@click.command(
    cls=Command,
    examples=("rebench-workbench env seal ./reference environments/mine/protected/reference.sealed",),
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("archive", type=click.Path(dir_okay=False, path_type=Path))
def seal(folder: Path, archive: Path) -> None:
    """Encrypt a folder of answers or solutions."""
    from environments.sealing import passphrase_from
    from environments.sealing import seal as write

    write(folder, archive, passphrase_from(os.environ))
    click.echo(archive)
    click.echo("keep the folder itself out of version control", err=True)


@click.command(
    cls=Command,
    examples=("rebench-workbench env unseal environments/mine/protected/reference.sealed ./reference",),
)
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def unseal(archive: Path, folder: Path) -> None:
    """Open a sealed archive.

    The folder must be new or empty; only you can read it.
    """
    from environments.sealing import passphrase_from
    from environments.sealing import unseal as write

    if folder.exists() and any(folder.iterdir()):
        raise Stop(f"cannot unseal into {folder}: it holds something", Exit.USAGE)
    for path in write(archive, folder, passphrase_from(os.environ)):
        click.echo(path)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench env new sort_numbers --into ./my-environments",
        "rebench-workbench start sort_numbers --env-folder ./my-environments",
    ),
)
@click.argument("slug")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Parent folder."
)
def new(slug: str, into: Path) -> None:
    """Write a small whole environment to start from."""
    from workbench.authoring.skeleton import SlugUnusable, write

    try:
        folder = write(slug, into)
    except SlugUnusable as error:
        raise Stop(str(error), Exit.USAGE) from error
    click.echo(folder)
    click.echo(
        f"it works once prepared: `rebench-workbench env prepare {slug} --env-folder {into}`; "
        "README.md in it says what to change",
        err=True,
    )
