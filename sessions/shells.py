"""Recorded shells of a live session: opened on request, each with a recorder of its own."""

from __future__ import annotations

from pathlib import Path

from sessions.protocol import Fault, Refusal


class Shells:
    """Opens the participant's shells and watches their recorders."""

    async def open(self) -> Path:
        """Start a recorded shell in the work folder; returns the socket to attach to."""
        raise Refusal("recorded shells are not available in this build", Fault.INFRASTRUCTURE)
