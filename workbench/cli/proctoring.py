"""Commands by which a proctor acts on a live session: credit, message, correct, hold, release, end."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.asking import require_yes
from workbench.cli.command import Command
from workbench.cli.reach import ask, meant, proctor_name, session_argument
from workbench.cli.text import fold
from workbench.ink.figures import duration, parse_duration


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic only in some versions of click
    """`15m`, `1h30m`, `0:15:00`, with a sign or without, as milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


by_option = click.option("--by", default=proctor_name, metavar="NAME", help="Who acts; else the login name.")


def _as_proctor(session: str | None, method: str, by: str, **parameters: Any) -> dict[str, Any]:
    return ask(meant(session), method, proctor=True, by=by, **parameters)


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    examples=(
        'rebench-workbench credit s-7f3a9c 15m --why "GPU fell off the bus"',
        'rebench-workbench credit s-7f3a9c -5m --why "credited twice by mistake"',
    ),
)
@click.argument("session")
@click.argument("amount", type=DurationType())
@click.option("--why", required=True, help="The reason, for the record.")
@by_option
def credit(session: str, amount: int, why: str, by: str) -> None:
    """Give time back, or take it, with a reason on record."""
    standing = _as_proctor(session, "credit", by, ms=amount, why=why)
    click.echo(
        f"{duration(abs(amount))} {'given' if amount > 0 else 'taken'}; the old figures stay visible; "
        f"{duration(standing['remaining_ms'])} left",
        err=True,
    )
    if amount > 0 and standing["elapsed_ms"] == 0:
        click.echo(
            fold(
                "more is given than was used: the clock shows the whole budget until the surplus is spent",
                err=True,
            ),
            err=True,
        )


@click.command(
    cls=Command,
    examples=('rebench-workbench message s-7f3a9c "The machine reboots at 14:00; you will be credited"',),
)
@click.argument("session")
@click.argument("text", nargs=-1, required=True)
@by_option
def message(session: str, text: tuple[str, ...], by: str) -> None:
    """Send the participant a message."""
    _as_proctor(session, "message", by, text=" ".join(text))
    click.echo("sent; it stays on their screen until they acknowledge it", err=True)


@click.command(
    cls=Command,
    examples=(
        'rebench-workbench correct s-7f3a9c 412 --what "pause was for the fire alarm" --why "reported later"',
    ),
)
@click.argument("session")
@click.argument("seq", type=int)
@click.option("--what", required=True, help="What is wrong with the event.")
@click.option("--why", required=True, help="How you know.")
@by_option
def correct(session: str, seq: int, what: str, why: str, by: str) -> None:
    """Remark that an event of the record is wrong."""
    _as_proctor(session, "correct", by, seq=seq, what=what, why=why)
    click.echo(f"remarked; event {seq} itself stays as it is", err=True)


@click.command(
    cls=Command, examples=('rebench-workbench hold s-7f3a9c --reason infrastructure -m "disk swap"',)
)
@session_argument
@click.option("--reason", type=click.Choice(("proctor", "infrastructure", "lost-contact", "crash", "break", "api")),
              default="proctor", show_default=True)  # fmt: skip
@click.option("--message", "-m", "note", default="", metavar="NOTE", help="A word about it.")
@by_option
def hold(session: str | None, reason: str, note: str, by: str) -> None:
    """Stop a session's clock as its proctor."""
    _as_proctor(session, "force_pause", by, reason=reason, note=note)
    click.echo("held; only `rebench-workbench release` lets it run on", err=True)


@click.command(cls=Command, examples=("rebench-workbench release s-7f3a9c",))
@session_argument
@by_option
def release(session: str | None, by: str) -> None:
    """Let a session's clock run on as its proctor."""
    _as_proctor(session, "force_resume", by)
    click.echo("running", err=True)


@click.command(cls=Command, examples=('rebench-workbench end s-7f3a9c --why "participant fell ill"',))
@click.argument("session")
@click.option("--why", required=True, help="The reason, for the record.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@by_option
def end(session: str, why: str, yes: bool, by: str) -> None:
    """End a session now."""
    record = meant(session)
    require_yes(f"End {record.session}? It cannot be taken up again", yes=yes)
    ask(record, "end", proctor=True, why=why, by=by)
    click.echo(f"{record.session} is ending; what was done so far stays scored", err=True)
