"""sessions and verify over several records, sound, live and damaged."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.workbench.cli.conftest import Run, Story
from workbench.cli.exits import Exit

Told = Callable[..., Story]


def test_closed_live_and_damaged_sessions_stand_in_one_list(run: Run, story: Told) -> None:
    closed = story(participant="jo").begin().score(1, 1.5).score(2, None, message="bad").close()
    live = story(participant="[red]kim[/]").begin().score(1, 1.2)
    damaged = story().begin()
    damaged.record.log.write_bytes(
        damaged.record.log.read_bytes().replace(b'"by":"participant"', b'"by":"somebody"', 1)
    )
    rows = {row["session"]: row for row in json.loads(run("sessions", "--json").out)["sessions"]}
    first, second, third = (rows[told.record.session] for told in (closed, live, damaged))
    assert (first["phase"], first["raw"], first["normalised"], first["score_calls"]) == (
        "closed",
        1.5,
        0.5,
        2,
    )
    assert (second["phase"], second["raw"], second["score_calls"]) == ("running", 1.2, 1)
    assert third["phase"] == "damaged"
    assert "chain breaks" in third["problem"]
    text = run("sessions").out
    assert "[red]kim[/]" in text
    assert "damaged" in text


def test_the_quick_look_at_a_closed_session_agrees_with_the_fold(run: Run, story: Told) -> None:
    told = story().begin().score(1, 1.7).pause(5).score(2, 1.4).close()
    (row,) = json.loads(run("sessions", "--json").out)["sessions"]
    standing = json.loads(run("status", "--json", "-s", told.record.session).out)
    for key in (
        "elapsed_ms",
        "remaining_ms",
        "score_calls",
        "participant",
        "environment",
        "profile",
        "phase",
    ):
        assert row[key] == standing[key], key
    assert row["raw"] == standing["counted"]["raw"]


def test_only_live_sessions_on_request(run: Run, story: Told) -> None:
    story().begin().close()
    live = story().begin()
    assert [row["session"] for row in json.loads(run("sessions", "--live", "--json").out)["sessions"]] == [
        live.record.session
    ]


def test_no_sessions_is_said_and_no_failure(run: Run) -> None:
    outcome = run("sessions")
    assert outcome.code == Exit.OK
    assert "no sessions" in outcome.err


def test_a_torn_last_line_is_a_remark_and_no_damage(run: Run, story: Told) -> None:
    told = story().begin()
    with told.record.log.open("ab") as log:
        log.write(b'{"seq":99,"half')
    report = json.loads(run("verify", told.record.session, "--quick", "--json").out)
    assert any("half-written" in remark for remark in report["remarks"])
    assert not any("half" in problem for problem in report["problems"])
