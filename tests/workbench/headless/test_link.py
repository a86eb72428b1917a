"""The way to a host: what happened while nobody was connected is told all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sessions.record.events import Event, SessionPolicy, Variant
from tests.workbench.cli.conftest import Story, story
from workbench.headless.link import Link

__all__ = ["story"]


async def test_a_session_that_closed_while_the_connection_was_down_is_told_to_its_end(
    story: Callable[..., Story],
) -> None:
    told = (
        story(policy=SessionPolicy(3_600_000, variant=Variant.HIDDEN_SCORE)).begin().score(1, 1.2345).close()
    )
    heard: list[Event] = []
    link = Link(told.record, heard.append, from_seq=5)
    await asyncio.wait_for(link.keep(), 10)
    assert link.over
    assert [event.seq for event in heard] == list(range(5, told.journal.state.last_seq + 1))
    assert heard[-1].kind == "session_closed"
    assert "1.2345" not in repr(heard), "what the session hides stays hidden here too"
