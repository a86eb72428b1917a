"""Asks an environment to prepare or to name its starter, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from environments import calls
from environments.contract import EnvironmentFault
from environments.invoke import Action, InvokeRequest

OnProgress = Callable[[str, float | None], None]


class InvocationFailed(EnvironmentFault):
    """The environment's process reported a fault, or ended without an answer."""


def invoke(
    action: Action,
    slug: str,
    profile: str,
    *,
    home: Path,
    folder: Path | None = None,
    on_progress: OnProgress = lambda _stage, _fraction: None,
) -> dict[str, Any]:
    """Run one `prepare` or `starter` and return its answer.

    The child ends with us: on Ctrl-C it is told to stop and what it made so far stays for the next try.

    Raises:
        InvocationFailed: with the environment's own words, or the end of its output.
    """
    request = InvokeRequest(action=action, slug=slug, profile=profile, home=home, folder=folder)
    try:
        answer = calls.call(request, lambda progress: on_progress(progress.stage, progress.fraction))
    except calls.CallFailed as fault:
        raise InvocationFailed(f"{action} of {slug} ({profile}) failed: {fault}") from fault
    (result,) = answer.values()
    return dict(result)
