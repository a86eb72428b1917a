"""Watches for others who use the GPU before, while and after something is timed on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from environments.machine.processes import descendants
from environments.triton_cumsum.timing.gpu_state import (
    BUSY_PERCENT,
    GpuReader,
    GpuReading,
    GpuUser,
    why_busy,
)

_PAUSE = 0.3
"""Seconds between two looks before a newcomer is named."""
_LOOKS = 12
"""Until the driver's figure, which lags behind, has forgotten our own use."""


def own_processes() -> set[int]:
    """Return this process and all below it: the workers, and whatever runs in them."""
    return {os.getpid(), *descendants(os.getpid())}


class Bystanders:
    """Everybody on the GPU who is not of this scoring.

    Who holds memory when scoring begins and computes nothing is let be. Later on, somebody disturbs who comes anew, or
    who computes while we time. Where the driver does not name this process among the GPU's (in some containers), its
    numbers are not those of our processes and say nothing: that goes for its list and for its samples of use, each by
    itself. Then only `why_busy` before and after tells.
    """

    def __init__(
        self, reader: GpuReader, own: Callable[[], set[int]] = own_processes, pause: float = _PAUSE
    ) -> None:
        self._reader, self._find_own, self._pause = reader, own, pause
        self._own: set[int] = set()
        self._before: set[int] | None = None
        self.last: GpuReading | None = None
        self.looks = 0
        """How often it could be told who is there."""

    def why_busy(self) -> str | None:
        """Return why nothing should be timed now, or should have been; ask while we leave the GPU alone.

        Whoever holds memory when this is first asked is known from then on.
        """
        self._own |= self._find_own()
        why = why_busy(self._reader, own=self._own, looks=_LOOKS, pause=self._pause)
        if self._before is None:
            self.last = self._reader.read()
            self._before = {p.pid for p in self.last.processes} if self.last else set()
        return why

    def why_disturbed(self) -> str | None:
        """Return who came or computed since the last look; None when nobody did, or nothing can be told."""
        others = self._look()
        if not all(map(_computes, others)):
            time.sleep(self._pause)  # a process of ours that just ended may still be listed
            here = {p.pid for p in self._look()}
            others = [p for p in others if p.pid not in self._own and (_computes(p) or p.pid in here)]
        if not others:
            return None
        whom = ", ".join(p.label() for p in others)
        return f"the GPU was used by others while your function was timed: {whom}; stop them and score again"

    def _look(self) -> list[GpuUser]:
        self._own |= self._find_own()
        reading = self._reader.read()
        listed = {p.pid for p in reading.processes if p.listed} if reading else set()
        if reading is None or os.getpid() not in listed:
            return []
        self.last = reading
        self.looks += 1
        sampled = any(p.active is not None and p.pid in self._own for p in reading.processes)
        before = self._before or set()
        return [
            p
            for p in reading.processes
            if p.pid not in self._own and ((p.listed and p.pid not in before) or (sampled and _computes(p)))
        ]


def _computes(process: GpuUser) -> bool:
    return (process.active or 0) >= BUSY_PERCENT
