"""Commands that add to a closed record's review: review, rescore."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from environments.contract import AssetFolders, GatewayAccess
from sessions.record.events import SessionOpened
from sessions.record.store import Record, Store
from workbench.cli.command import Command
from workbench.cli.exits import Exit, Stop
from workbench.cli.reach import meant, session_argument
from workbench.cli.reading import json_option, print_json
from workbench.cli.start import environment_folders_option
from workbench.cli.text import table
from workbench.ink.figures import figure, local_time
from workbench.ink.text import literal

VERDICTS = ("valid", "valid with notes", "redo", "exclude")

by_option = click.option(
    "--by", metavar="NAME", default=getpass.getuser, help="Who reviews; else the login name."
)


@click.command(
    cls=Command,
    examples=(
        "rebench-workbench review s-7f3a9c",
        'rebench-workbench review s-7f3a9c --comment "long gap here" --at 1:33:00',
        'rebench-workbench review s-7f3a9c --verdict "valid with notes" --comment "network was slow"',
    ),
)
@session_argument
@click.option("--comment", metavar="TEXT", help="Add a comment.")
@click.option("--at", metavar="TIME", help="The session time the comment is about.")
@click.option(
    "--verdict", type=click.Choice(VERDICTS), help="Give a verdict; the latest of each reviewer holds."
)
@click.option("--blind", is_flag=True, help="The verdict was given without seeing name and score.")
@by_option
@json_option
def review(
    session: str | None,
    comment: str | None,
    at: str | None,
    verdict: str | None,
    blind: bool,
    by: str,
    as_json: bool,
) -> None:
    """List a record's review, or add a comment or a verdict to it."""
    from sessions.audit.reviewing import add_review
    from sessions.record.events import CommentAdded, Verdict, VerdictGiven
    from workbench.ink.figures import parse_duration

    record = meant(session)
    if verdict is not None:
        add_review(record, VerdictGiven(Verdict(verdict), comment or "", blind), f"reviewer {by}")
    elif comment is not None:
        add_review(
            record, CommentAdded(comment, None if at is None else parse_duration(at)), f"reviewer {by}"
        )
    _show(record, as_json)


def _show(record: Record, as_json: bool) -> None:
    from sessions.audit.reviewing import read_reviews
    from sessions.record.events import as_plain

    events = [as_plain(event) for event in read_reviews(record)]
    if as_json:
        print_json({"session": record.session, "review": events})
    elif not events:
        click.echo(f"nobody has reviewed {record.session} yet", err=True)
    else:
        rows = [
            (local_time(e["at"]), literal(e["by"]), e["kind"].replace("_", " "), _words(e["body"]))
            for e in events
        ]
        click.echo(table(("when", "by", "what", "says"), rows))


def _words(body: dict[str, Any]) -> str:
    said = [str(body[key]) for key in ("verdict", "text", "status", "message") if body.get(key)]
    return literal(": ".join(said))


@click.command(
    cls=Command,
    examples=("rebench-workbench rescore s-7f3a9c", "rebench-workbench rescore s-7f3a9c --score 4 --json"),
)
@session_argument
@click.option("--score", "numbers", type=int, multiple=True, help="Which scores; else the one that counts.")
@environment_folders_option
@by_option
@json_option
def rescore(
    session: str | None,
    numbers: tuple[int, ...],
    environment_folders: tuple[Path, ...],
    by: str,
    as_json: bool,
) -> None:
    """Score snapshots of a record again on this machine; the old scores stay."""
    record = meant(session)
    rows = asyncio.run(_rescore(record, numbers, environment_folders, by))
    if as_json:
        print_json({"session": record.session, "rescored": rows})
        return
    cells = [
        (f"#{r['number']}", figure(r["before"]), figure(r["raw"]), r["status"], literal(r["message"]))
        for r in rows
    ]
    click.echo(table(("score", "then", "now", "status", "message"), cells, right="then|now"))


@contextmanager
def _lent(
    opened: SessionOpened, folders: AssetFolders, environment_folder: Path | None
) -> Iterator[GatewayAccess | None]:
    """Lend one scoring a way to a model, where its profile has a gateway."""
    if (budget := opened.environment.profile(opened.profile).gateway) is None:
        yield None
        return
    from sessions.gateway.lent import lent_gateway
    from sessions.gateway.service import OwnModel

    own = OwnModel(opened.environment.slug, opened.profile, folders, environment_folder)
    with lent_gateway(budget, own) as gateway, gateway.lend() as access:
        yield access


async def _rescore(
    record: Record, numbers: tuple[int, ...], environment_folders: tuple[Path, ...], by: str
) -> list[dict[str, Any]]:
    from environments import assets
    from environments.registry import find
    from sessions.audit.rescoring import rescore as again
    from sessions.audit.reviewing import add_review
    from sessions.host.scoring import ProcessScorer
    from workbench.review.answers import folded

    state = folded(record)
    counted = () if state.counted is None else (state.counted.number,)
    done: list[dict[str, Any]] = []
    found = find(state.opened.environment.slug, environment_folders)
    folders = assets.folders_for(found.spec, state.opened.profile, Store().home)
    for number in numbers or counted:
        if not 0 <= number < len(state.scores) or state.scores[number].commit is None:
            raise Stop(f"{record.session} has no score {number} with a snapshot", Exit.USAGE)
        row = state.scores[number]
        with _lent(state.opened, folders, found.outside) as access:
            body = await again(
                record,
                state.opened,
                row,
                ProcessScorer(),
                folders,
                environment_folder=found.outside,
                gateway=access,
            )
        add_review(record, body, f"reviewer {by}")
        done.append(
            {"number": number, "before": row.raw, "raw": body.raw, "status": body.status.value,
             "message": body.message, "seconds": body.seconds}
        )  # fmt: skip
    return done
