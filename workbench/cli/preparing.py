"""Progress of a preparation on standard error: a bar on a terminal, a line for each stage elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from workbench.ink.text import one_line


@contextmanager
def shown_progress(what: str) -> Iterator[Callable[[str, float | None], None]]:
    """Yield a function that shows (stage, fraction)."""
    if not sys.stderr.isatty():
        yield _Lines(what).show
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Stage(TextColumn):
        def render(self, task: object) -> Text:
            return Text(one_line(task.description, 60))  # type: ignore[attr-defined]

    columns = (SpinnerColumn(), Stage(""), BarColumn(bar_width=30), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(stage: str, fraction: float | None) -> None:
            progress.update(task, description=f"{what}: {stage}", total=None if fraction is None else 1.0,
                            completed=fraction or 0.0)  # fmt: skip

        yield show
    click.echo(f"{what}: done", err=True)


class _Lines:
    def __init__(self, what: str) -> None:
        self._what = what
        self._stage = ""

    def show(self, stage: str, _fraction: float | None) -> None:
        if stage != self._stage:
            click.echo(f"{self._what}: {one_line(stage)}", err=True)
        self._stage = stage
