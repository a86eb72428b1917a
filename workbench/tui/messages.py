"""What panels and pages tell the app; facts flow down, these flow up."""

from __future__ import annotations

from typing import Any

from textual.message import Message


class Ask(Message):
    """Ask the host for something; `done` is shown when it was granted, the refusal when not."""

    def __init__(self, method: str, parameters: dict[str, Any] | None = None, *, done: str = "") -> None:
        super().__init__()
        self.method = method
        self.parameters = parameters or {}
        self.done = done
