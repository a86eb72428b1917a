"""The page docs/commands.md, made from the commands themselves: python -m workbench.cli.reference > docs/commands.md."""

from __future__ import annotations

from collections.abc import Iterator

import click

from workbench.cli.command import Command, LazyGroup
from workbench.cli.exits import Exit
from workbench.cli.root import PROGRAM, root

HEAD = f"""# All commands

Made from the commands themselves by `python -m workbench.cli.reference`; a test compares.

`{PROGRAM} COMMAND --help` says the same. Data goes to standard output, talk to standard error; commands that print
data take `--json`. The session meant is found from `--session`, `$REBENCH_SESSION`, the work folder you stand in, or
because it is the only live one. `NO_COLOR` and `FORCE_COLOR` are honoured, colours go to terminals only.
"""


def page() -> str:
    """Return the whole page."""
    return (
        "\n".join([HEAD, *_overview(), *_codes(), *_variables(), *_commands(root, PROGRAM)]).rstrip() + "\n"
    )


def _overview() -> Iterator[str]:
    yield "| command | what it does |"
    yield "| --- | --- |"
    for name, command in leaves(root):
        yield f"| `{name}` | {command.get_short_help_str(200)} |"
    yield ""


def _codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |"
    yield "| --- | --- |"
    for code in Exit:
        yield f"| {int(code)} | {code.meaning} |"
    yield ""


def _variables() -> Iterator[str]:
    yield "## Environment variables\n"
    yield "| variable | meaning |"
    yield "| --- | --- |"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    yield ""


VARIABLES = {
    "REBENCH_HOME": "where sessions and prepared data are kept; else the user's data folder",
    "REBENCH_RUNTIME": "where sockets are; else `$XDG_RUNTIME_DIR`, else the temporary folder",
    "REBENCH_SESSION": "the session meant; set in recorded shells and for agents",
    "REBENCH_ENVIRONMENTS": "folders with environments that are not installed, separated by `:`",
    "REBENCH_ENDPOINT": "set for an agent that `run` starts: the socket of its session, see [protocol.md](protocol.md)",
    "REBENCH_THEME": "the screen's theme",
    "REBENCH_ASCII": "1: the screen draws with ASCII alone",
    "REBENCH_RECORDING": "set in a recorded shell: its session and the number of its recording, as SESSION/NUMBER",
    "REBENCH_GATEWAY_URL": "a hosted model service for environments with a gateway; read by the host alone",
    "REBENCH_GATEWAY_KEY": "the key of that service; never reaches a submission",
    "REBENCH_GATEWAY_MODEL": "what that service calls the model, where it is not what the environment calls it",
    "REBENCH_WORKBENCH_KEY": "passphrase of sealed archives, see [proctor.md](proctor.md)",
    "REBENCH_WORKBENCH_KEY_FILE": "a file that holds it",
}


def leaves(group: LazyGroup, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from leaves(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _commands(group: LazyGroup, program: str) -> Iterator[str]:
    for name, command in leaves(group):
        yield f"## {program} {name}\n"
        yield f"{(command.help or '').strip()}\n"
        context = click.Context(command, info_name=f"{program} {name}")
        yield f"```text\n{command.get_usage(context)}\n```\n"
        yield from _options(command, context)
        if isinstance(command, Command):
            yield "```sh\n" + "\n".join(command.examples) + "\n```\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [found for parameter in command.params if (found := parameter.get_help_record(context))]
    if not records:
        return
    yield "| option | meaning |"
    yield "| --- | --- |"
    for option, text in records:
        yield f"| `{option.replace('|', chr(92) + '|')}` | {text.replace('|', chr(92) + '|')} |"
    yield ""


if __name__ == "__main__":
    click.echo(page(), nl=False)
