"""Says in sentences what the isolation probe found: once for all that it could not reach, once for what it could."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from sessions.record.events import Isolation, IsolationFound
from workbench.ink.text import one_line

_ATTEMPT = re.compile(r"(?P<level>\w+): (?P<what>.+): (?P<found>out of reach|REACHED) \(.*\)")
_UNUSABLE = re.compile(r"(?P<level>\w+): cannot be used: (?P<why>.+)")
_UNPROTECTED = f"{Isolation.NONE}: unprotected"


class _Attempts(msgspec.Struct):
    """What was tried at one level, by how it went."""

    reached: list[str]
    out_of_reach: list[str]


def isolation_sentences(found: IsolationFound) -> list[str]:
    """Return what the evidence means to a person; evidence in words of its own stays as it is."""
    tried: dict[str, _Attempts] = {}
    others: list[str] = []
    for evidence in map(one_line, found.evidence):
        if attempt := _ATTEMPT.fullmatch(evidence):
            attempts = tried.setdefault(attempt["level"], _Attempts([], []))
            names = attempts.reached if attempt["found"] == "REACHED" else attempts.out_of_reach
            names.append(attempt["what"])
        elif unusable := _UNUSABLE.fullmatch(evidence):
            others.append(f"{unusable['level']} cannot be used here: {unusable['why']}")
        elif evidence == _UNPROTECTED:
            others.append(
                "Nothing keeps the session's shells from held-out data and records; it is marked as unprotected."
            )
        else:
            others.append(evidence)
    said = [
        sentence
        for level, attempts in tried.items()
        for sentence in (
            _in_force(attempts) if level == found.level.value else _given_up(level, attempts.reached)
        )
    ]
    return [*said, *others]


def _in_force(attempts: _Attempts) -> list[str]:
    said = []
    if attempts.reached:
        said.append(f"The session's shells can reach {_listed(attempts.reached)}. The record says so.")
    if attempts.out_of_reach:
        said.append(
            f"The session's shells cannot reach {_listed(attempts.out_of_reach)}: "
            "this was tried at the opening, and is as it should be."
        )
    return said


def _given_up(level: str, reached: Sequence[str]) -> list[str]:
    return [f"{level} does not hold here: {_listed(reached)} could be reached."] if reached else []


def _listed(names: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
