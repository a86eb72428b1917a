"""status, time, history and brief, on a live and on a closed session."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sessions.clients.protocol import Refusal
from sessions.record.events import SessionClosed, SessionPolicy, Variant
from tests.workbench.cli.conftest import Run, Story
from tests.workbench.cli.fake_host import FakeHost
from workbench.cli.exits import Exit

Told = Callable[..., Story]
HostFor = Callable[..., FakeHost]


def test_status_of_a_live_session_comes_from_its_host(run: Run, story: Told, host_for: HostFor) -> None:
    told = story().begin().score(1, 1.5).score(2, 1.2)
    host = host_for(told.record)
    outcome = run("status")
    assert outcome.code == Exit.OK
    assert host.asked == [("participant:status", {})]
    assert "1.2000  normalised 0.800  #2" in outcome.out
    assert "7:57:" in outcome.out


def test_status_of_a_closed_session_is_folded_from_its_log(run: Run, story: Told) -> None:
    told = story().begin().score(1, 1.5).close()
    outcome = run("status", "--session", told.record.session, "--json")
    standing = json.loads(outcome.out)
    assert outcome.code == Exit.OK
    assert standing["phase"] == "closed"
    assert standing["counted"]["raw"] == 1.5
    assert set(standing) >= {
        "session", "environment", "profile", "phase", "elapsed_ms", "remaining_ms", "budget_ms", "paused_ms", "pause",
        "best", "last", "counted", "starting", "pending", "direction", "raw_label", "anchors", "isolation", "health",
        "scores_hidden", "messages",
    }  # fmt: skip


def test_the_line_is_one_line_even_with_a_host_in_trouble(run: Run, story: Told, host_for: HostFor) -> None:
    told = story().begin().score(1, 1.5)
    host_for(told.record)
    outcome = run("status", "--line")
    assert outcome.out.count("\n") == 1
    assert "counts 1.5000 #1" in outcome.out


def test_hidden_scores_stay_hidden_in_every_reading(run: Run, story: Told) -> None:
    told = story(policy=SessionPolicy(budget_ms=3_600_000, variant=Variant.HIDDEN_SCORE))
    told.begin().score(1, 1.5678, message="loss was 1.5678").close()
    for arguments in (
        ("status",),
        ("status", "--json"),
        ("status", "--line"),
        ("history",),
        ("history", "--json"),
    ):
        assert "1.5678" not in run(*arguments, "-s", told.record.session).out


def test_time_prints_what_is_left(run: Run, story: Told) -> None:
    told = story().begin().close()
    assert run("time", "-s", told.record.session).out == "7:59:58\n"


def test_json_of_time_has_milliseconds(run: Run, story: Told) -> None:
    told = story().begin().pause(12).close()
    figures = json.loads(run("time", "-s", told.record.session, "--json").out)
    assert figures["paused_ms"] == 12 * 60_000
    assert figures["elapsed_ms"] + figures["remaining_ms"] == figures["budget_ms"]


def test_history_marks_the_score_that_counts(run: Run, story: Told) -> None:
    told = story().begin().score(1, 1.2, note="wider").score(2, None, message="aten.div at model:41").close()
    lines = run("history", "-s", told.record.session).out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["0", "1★", "2"]
    assert "aten.div at model:41" in lines[3]


def test_escape_sequences_in_a_note_or_message_reach_no_terminal(run: Run, story: Told) -> None:
    told = story().begin().score(1, 1.2, note="\x1b]52;c;aGk=\x07", message="[bold]\x1b[2J\x9b31m").close()
    out = run("history", "-s", told.record.session).out
    assert "\x1b" not in out
    assert "\x9b" not in out
    assert "[bold]" in out


def test_the_brief_is_refused_before_the_clock_starts(run: Run, story: Told, host_for: HostFor) -> None:
    told = story()
    host_for(told.record, brief=Refusal("the brief is shown once the clock runs"))
    outcome = run("brief")
    assert outcome.code == Exit.REFUSED
    assert "once the clock runs" in outcome.err
    assert outcome.out == ""


def test_the_brief_of_a_closed_session_is_still_readable(run: Run, story: Told) -> None:
    told = story().begin().close()
    assert "[bold]Not markup.[/]" in run("brief", "-s", told.record.session).out


def test_a_session_that_never_began_shows_no_brief(run: Run, story: Told) -> None:
    told = story()
    told.tell(SessionClosed(0, None, None, None, "0" * 64, "ended by proctor"))
    assert run("brief", "-s", told.record.session).code == Exit.REFUSED


def test_the_session_is_the_one_whose_work_folder_one_stands_in(
    run: Run, story: Told, host_for: HostFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = story().begin(), story().begin()
    host_for(first.record)
    host_for(second.record)
    inner = second.work_tree / "deep" / "er"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert json.loads(run("status", "--json").out)["session"] == second.record.session


def test_two_live_sessions_and_no_hint_is_a_question_back(run: Run, story: Told) -> None:
    first, second = story(), story()
    outcome = run("status")
    assert outcome.code == Exit.USAGE
    assert first.record.session in outcome.err
    assert second.record.session in outcome.err


def test_the_environment_variable_names_the_session(
    run: Run, story: Told, host_for: HostFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = story()
    story()
    host_for(first.record)
    monkeypatch.setenv("REBENCH_SESSION", first.record.session)
    assert json.loads(run("status", "--json").out)["session"] == first.record.session
