"""check, score, note, pause, resume, submit and survey, against a scripted host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions.clients.protocol import Fault, Refusal
from tests.workbench.cli.conftest import COMMIT, Run, Story
from tests.workbench.cli.fake_host import FakeHost
from workbench.cli.exits import Exit

Told = Callable[..., Story]
HostFor = Callable[..., FakeHost]


def _row(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "number": number, "at": "2026-01-01T00:00:00.000Z", "elapsed_ms": 60_000, "note": "", "snapshot": 1,
        "commit": COMMIT, "status": "valid", "raw": 1.3, "normalised": 0.7, "change": -0.7, "message": "loss 3.6",
        "seconds": 2.5, "stage": "", "fraction": None, "details_sha256": None, **changes,
    }  # fmt: skip


def _scored(host_for: HostFor, told: Story, row: dict[str, Any]) -> FakeHost:
    pending = row | {"status": None, "raw": None}
    host = host_for(told.record, score=pending, history={"rows": [_row(0), row]})
    host.notifications = [
        _event("score_progressed", number=1, stage="evaluating", fraction=0.34),
        _event("score_progressed", number=7, stage="another one's", fraction=0.5),
        {"method": "telemetry", "params": {"sample": []}},
        _event("score_recorded", number=1),
    ]
    return host


def _event(kind: str, **body: Any) -> dict[str, Any]:
    return {"method": "event", "params": {"kind": kind, "body": body}}


def test_score_waits_and_shows_progress_on_standard_error(run: Run, story: Told, host_for: HostFor) -> None:
    host = _scored(host_for, story().begin(), _row())
    outcome = run("score", "-m", "wider")
    assert outcome.code == Exit.OK
    assert outcome.out.startswith("#1  valid  1.3000  normalised 0.700  change -0.7000\nloss 3.6\n")
    assert "scoring #1 · evaluating 34%" in outcome.err
    assert "another one's" not in outcome.err
    assert host.parameters_of("participant:score") == {"note": "wider", "wait": False}


def test_score_json_is_the_row(run: Run, story: Told, host_for: HostFor) -> None:
    _scored(host_for, story().begin(), _row())
    assert json.loads(run("score", "--json").out) == _row()


def test_an_invalid_score_is_an_answer_and_no_failure(run: Run, story: Told, host_for: HostFor) -> None:
    _scored(
        host_for,
        story().begin(),
        _row(status="invalid", raw=None, normalised=None, change=None, message="aten.div"),
    )
    outcome = run("score")
    assert outcome.code == Exit.OK
    assert "invalid" in outcome.out
    assert "aten.div" in outcome.out


def test_our_own_failure_ends_a_score_with_5(run: Run, story: Told, host_for: HostFor) -> None:
    _scored(
        host_for, story().begin(), _row(status="infrastructure", raw=None, normalised=None, message="disk")
    )
    assert run("score").code == Exit.INFRASTRUCTURE


def test_score_without_waiting_returns_at_once(run: Run, story: Told, host_for: HostFor) -> None:
    told = story().begin()
    host_for(told.record, score=_row(status=None, raw=None))
    outcome = run("score", "--no-wait")
    assert outcome.code == Exit.OK
    assert "#1 is being scored" in outcome.out


def test_ctrl_c_leaves_the_scoring_running_where_nobody_can_be_asked(
    run: Run, story: Told, host_for: HostFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story().begin()
    host = host_for(told.record, score=_row(status=None, raw=None))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.cli.scoring._show_until_recorded", interrupted)
    outcome = run("score")
    assert outcome.code == Exit.INTERRUPTED
    assert "goes on" in outcome.err
    assert not [name for name, _ in host.asked if name.endswith("cancel_score")]


def test_a_scoring_can_be_cancelled_by_number(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    assert run("score", "--cancel", "3").code == Exit.OK
    assert host.parameters_of("participant:cancel_score") == {"number": 3}


def test_check_says_what_is_wrong_and_where(run: Run, story: Told, host_for: HostFor) -> None:
    problem = {"what": "softmax is not allowed", "where": "model.py:41", "hint": "use relu"}
    report = {"snapshot": 1, "accepted": False, "problems": [problem], "seconds": 0.5, "fault": None}
    host_for(story().begin().record, check=report)
    outcome = run("check")
    assert outcome.code == Exit.NOT_ACCEPTED
    assert "model.py:41: softmax is not allowed" in outcome.out
    assert "use relu" in outcome.out
    assert json.loads(run("check", "--json").out) == report


def test_a_check_that_broke_is_not_held_against_the_work(run: Run, story: Told, host_for: HostFor) -> None:
    report = {"snapshot": 1, "accepted": False, "problems": [], "seconds": 0.5, "fault": "ScorerBroken: oops"}
    host_for(story().begin().record, check=report)
    assert run("check").code == Exit.INFRASTRUCTURE


def test_an_accepted_check_is_0(run: Run, story: Told, host_for: HostFor) -> None:
    host_for(
        story().begin().record,
        check={"snapshot": 1, "accepted": True, "problems": [], "seconds": 0.5, "fault": None},
    )
    assert run("check").code == Exit.OK


def test_a_note_is_sent_word_for_word(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    assert run("note", "lr", "3e-4", "[/] diverges").code == Exit.OK
    assert host.parameters_of("participant:note") == {"text": "lr 3e-4 [/] diverges"}


def test_a_pause_names_its_reason(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    assert run("pause", "--reason", "break", "-m", "lunch").code == Exit.OK
    assert host.parameters_of("participant:pause") == {"reason": "break", "note": "lunch"}


def test_an_unknown_pause_reason_lists_the_known_ones(run: Run, story: Told) -> None:
    story().begin()
    outcome = run("pause", "--reason", "tired")
    assert outcome.code == Exit.USAGE
    assert "infrastructure" in outcome.err


def test_resume_goes_on_after_a_pause_and_begins_what_has_not_begun(
    run: Run, story: Told, host_for: HostFor
) -> None:
    told = story().begin()
    host = host_for(told.record)
    assert run("resume").code == Exit.OK
    assert [name for name, _ in host.asked] == [
        "participant:status",
        "participant:resume",
        "participant:status",
    ]

    waiting = story()
    waiting.score(0, 2.0, starting=True)
    other = host_for(waiting.record)
    assert run("resume", "-s", waiting.record.session, "--yes").code == Exit.OK
    assert ("participant:start_clock", {}) in other.asked
    assert len(other.parameters_of("participant:consent")["rules_sha256"]) == 64


def test_nothing_begins_without_consent_or_a_terminal_to_ask_on(
    run: Run, story: Told, host_for: HostFor
) -> None:
    waiting = story()
    waiting.score(0, 2.0, starting=True)
    host = host_for(waiting.record)
    assert run("begin").code == Exit.USAGE
    assert host.asked == [("participant:status", {})]


def test_a_clock_that_was_started_is_not_started_again(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    outcome = run("begin")
    assert outcome.code == Exit.REFUSED
    assert "was started before" in outcome.err
    assert "agree" not in outcome.err
    assert host.asked == [("participant:status", {})]


@pytest.mark.parametrize("command", [("score",), ("check",), ("pause",), ("submit", "--yes"), ("note", "x")])
def test_what_the_session_refuses_is_3_with_the_hosts_words(
    run: Run, story: Told, host_for: HostFor, command: tuple[str, ...]
) -> None:
    host_for(story().begin().record, **{command[0]: Refusal(f"cannot {command[0]}: not now")})
    outcome = run(*command)
    assert outcome.code == Exit.REFUSED
    assert f"cannot {command[0]}: not now" in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.BAD_PARAMETERS, Exit.USAGE),
        (Fault.INFRASTRUCTURE, Exit.INFRASTRUCTURE),
        (Fault.INTERNAL, Exit.INFRASTRUCTURE),
        (Fault.UNKNOWN_METHOD, Exit.REFUSED),
    ],
)
def test_each_fault_of_the_host_has_its_code(
    run: Run, story: Told, host_for: HostFor, fault: Fault, code: Exit
) -> None:
    host_for(story().begin().record, note=Refusal("no", fault))
    assert run("note", "x").code == code


@pytest.mark.parametrize(
    "command", [("score",), ("check",), ("note", "x"), ("pause",), ("resume",), ("submit", "--yes")]
)
def test_a_closed_session_is_never_acted_upon(run: Run, story: Told, command: tuple[str, ...]) -> None:
    told = story().begin().close()
    before = told.record.log.read_bytes()
    outcome = run(*command, "-s", told.record.session)
    assert outcome.code == Exit.REFUSED
    assert "is closed" in outcome.err
    assert told.record.log.read_bytes() == before


def test_submit_without_a_terminal_to_ask_on_needs_yes(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    assert run("submit").code == Exit.USAGE
    assert not [name for name, _ in host.asked if name.endswith("submit")]
    assert run("submit", "--yes").code == Exit.OK
    assert ("participant:submit", {}) in host.asked


def test_a_closed_session_asks_no_questions(run: Run, story: Told) -> None:
    told = story().begin().close()
    outcome = run("survey", "-s", told.record.session)
    assert outcome.code == Exit.REFUSED
    assert "is closed" in outcome.err


def test_the_survey_takes_answers_from_the_command_line(run: Run, story: Told, host_for: HostFor) -> None:
    host = host_for(story().begin().record)
    assert run("survey", "--answer", "hardest=the rules", "--answer", "hours=6=six").code == Exit.OK
    assert host.parameters_of("participant:survey") == {"answers": {"hardest": "the rules", "hours": "6=six"}}
