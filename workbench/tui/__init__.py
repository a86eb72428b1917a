"""The terminal interface; importing it costs nothing until `run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tui.source import Source


def run(
    source: Source,
    *,
    theme: str | None = None,
    shell: Callable[[], object] | None = None,
    rules: str = "",
    mouse: bool = True,
) -> int:
    """Show a session until the person detaches or it is over; returns the exit code.

    `theme` is one of `workbench.tui.theme.NAMES`, else `$REBENCH_THEME`, else dark. `shell` runs a recorded
    shell on this terminal and returns when it ends. `rules` is the text agreed to before the clock starts.

    Raises:
        ThemeUnknown: there is no such theme.
    """
    from workbench.tui.runner import run_app

    return run_app(source, theme=theme, shell=shell, rules=rules, mouse=mouse)
