"""Commands that show examples, and groups that import a command only when it is wanted."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """A command that has not been imported yet."""

    section: str
    place: str
    """`module:attribute`."""
    help: str
    """The same as the first line of the command's own help; a test holds them together."""


class Command(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *arguments: Any, examples: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    # Not `write_text`, which would break a command in two.
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")
        super().format_epilog(ctx, formatter)


class LazyGroup(click.Group):
    """A group that knows its commands by name and place, and suggests the nearest for a name it lacks."""

    def __init__(self, *arguments: Any, entries: Mapping[str, Entry], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            raise click.UsageError(unknown("command", name, list(self.entries)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        widest = max(map(len, self.entries))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def unknown(what: str, name: str, known: list[str]) -> str:
    """Return the sentence for a name that is not known: the nearest, and all there are."""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"no {what} {name!r}.{hint} There are: {', '.join(known) or 'none'}."
