"""Every kind of event has its words."""

from __future__ import annotations

from sessions.record.events import REVIEW_KINDS, SESSION_KINDS
from workbench.ink.events import _WORDS


def test_every_kind_of_event_can_be_described() -> None:
    assert set(_WORDS) == {*SESSION_KINDS, *REVIEW_KINDS}
