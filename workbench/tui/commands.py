"""What the command palette offers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from workbench.tui.source import Mode
from workbench.tui.theme import NAMES

if TYPE_CHECKING:
    from workbench.tui.app import WorkbenchApp


def commands(app: WorkbenchApp) -> Iterator[SystemCommand]:
    """Yield every command with what it does; where nothing can be sent, only those that look."""
    if app.source.mode is Mode.LIVE:
        yield from _acting(app)
    yield SystemCommand("Brief", "read the brief, with contents and search", app.action_brief)
    yield SystemCommand("Health", "recorder, snapshots, host and the rest", app.action_health)
    yield SystemCommand("Message", "read the proctor's message", app.action_message)
    yield SystemCommand("Keys", "every key of the main screen", app.action_keys)
    yield SystemCommand("Detach", "leave the screen; the session goes on", app.action_detach)
    for name in NAMES:
        yield SystemCommand(f"Theme: {name}", f"use the {name} theme", partial(app.set_theme, name))


def _acting(app: WorkbenchApp) -> Iterator[SystemCommand]:
    yield SystemCommand("Score", "snapshot the work folder and score it", app.action_score)
    yield SystemCommand("Check", "say whether the work folder would be accepted", app.action_check)
    yield SystemCommand("Note", "write a note into the record", app.action_note)
    yield SystemCommand("Pause", "stop the clock for a break", app.action_pause)
    yield SystemCommand("Resume", "let the clock run again", app.action_resume)
    yield SystemCommand("Shell", "a recorded shell in the work folder", app.action_shell)
    yield SystemCommand("Cancel score", "cancel the score that runs", app.action_cancel)
    yield SystemCommand("Submit", "finish: freeze, final snapshot, final score", app.action_submit)
