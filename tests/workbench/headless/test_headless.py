"""Whole sessions of an agent over JSON-RPC, on the real host."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions.clients.protocol import Fault
from sessions.record.events import BODY_OF
from sessions.record.log import read_log
from sessions.record.store import Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Run
from tests.workbench.headless.conftest import Agent
from tests.workbench.live import end_hosts, host_pid
from workbench.cli.exits import Exit
from workbench.headless.methods import METHODS, schema_of

pytestmark = pytest.mark.timeout(180)
Started = Callable[..., Agent]


def test_a_whole_session_leaves_a_sound_record(agent: Started, home: Path, run: Run) -> None:
    one = agent()
    opened = one.ask("session.start", minutes=30)
    assert opened["budget_ms"] == 30 * 60_000
    assert opened["phase"] == "running"
    assert "Tiny sum" in one.ask("brief")["text"]
    assert one.ask("write_file", path="answer.txt", content="6\n")["size"] == 2
    assert one.ask("check")["accepted"]
    scored = one.ask("score", note="six")
    assert (scored["raw"], scored["normalised"]) == (6.0, 0.5)
    done = one.ask("exec", command="echo 9 > answer.txt && cat answer.txt && exit 3")
    assert (done["exit_code"], done["output"], done["timed_out"]) == (3, "9\n", False)
    assert one.ask("read_file", path="answer.txt")["content"] == "9\n"
    one.ask("note", text="done")
    one.ask("usage", model="m", input_tokens=10, output_tokens=2, dollars=0.01)
    one.ask("submit")
    wait_until(lambda: bool(one.heard("closed")), what="the closing notification")
    assert one.ask("history")["rows"][-1]["raw"] == 9.0
    assert one.refused("score")["code"] == Fault.REFUSED
    assert one.hang_up() == Exit.OK
    (record,) = Store(home).records()
    assert run("verify", record.session).code == Exit.OK
    assert record.header()["participant_kind"] == "agent"


def test_every_answer_carries_the_time_left_refusals_too(agent: Started) -> None:
    one = agent()
    assert one.refused("status")["data"] == {"time_left_ms": None, "phase": None}
    one.ask("session.start", minutes=10)
    left = [one.ask(method)["time_left_ms"] for method in ("status", "brief", "history", "check")]
    left.append(one.refused("read_file", path="../x")["data"]["time_left_ms"])
    assert all(0 < ms <= 600_000 for ms in left)
    assert left == sorted(left, reverse=True)


def test_the_record_has_the_shape_of_one_made_by_hand(
    agent: Started, home: Path, run: Run, tmp_path: Path
) -> None:
    """The same steps through the command line and through an agent give the same kinds of events."""
    one = agent("tiny_sum", "--isolation", "none", "--workdir", str(tmp_path / "agent"))
    one.ask("session.start")
    one.ask("brief")
    one.ask("write_file", path="answer.txt", content="5")
    one.ask("check")
    one.ask("score")
    one.ask("note", text="n")
    one.ask("pause", reason="api")
    one.ask("resume")
    one.ask("submit")
    one.ask("survey", answers={})
    wait_until(lambda: bool(one.heard("closed")), what="the end")
    (first,) = Store(home).records()

    assert (
        run(
            "start",
            "tiny_sum",
            "--detach",
            "--yes",
            "--isolation",
            "none",
            "--workdir",
            str(tmp_path / "hand"),
        ).code
        == 0
    )
    second = next(record for record in Store(home).records() if record != first)
    run("brief")
    (tmp_path / "hand" / "answer.txt").write_text("5")
    for command in (("check",), ("score",), ("note", "n"), ("pause",), ("resume",), ("submit", "--yes")):
        assert run(*command, "-s", second.session).code == 0
    assert run("survey", "--answer", "a=b", "-s", second.session).code == 0
    wait_until(second.closed, what="the end")
    steady = {"heartbeat", "health_changed", "activity_seen", "score_progressed"}
    by_agent, by_hand = (
        [event.kind for event in read_log(record.log).events if event.kind not in steady]
        for record in (first, second)
    )
    assert by_agent == by_hand
    assert set(by_agent) <= set(BODY_OF)
    end_hosts(home)


def test_requests_go_on_while_a_score_is_computed(agent: Started) -> None:
    one = agent()
    one.ask("session.start")
    one.ask("write_file", path="answer.txt", content="slow 1")
    scoring = one.send("score")
    assert one.ask("status")["phase"] == "running"
    assert scoring.empty()
    assert scoring.get(timeout=30)["result"]["raw"] == 2.0
    assert any(told["number"] == 1 for told in one.heard("score_progress"))
    assert one.heard("score_recorded")[-1]["raw"] == 2.0


def test_a_score_can_be_polled_instead(agent: Started) -> None:
    one = agent()
    one.ask("session.start")
    row = one.ask("score", wait=False)
    assert row["status"] is None
    wait_until(lambda: one.ask("history")["rows"][1]["status"] == "valid")


def test_binary_files_travel_as_base64(agent: Started) -> None:
    one = agent()
    one.ask("session.start")
    content = base64.b64encode(b"\xff\x00\xfe").decode()
    one.ask("write_file", path="w.bin", content=content, encoding="base64")
    read = one.ask("read_file", path="w.bin")
    assert (read["content"], read["encoding"], read["size"], read["more"]) == (content, "base64", 3, False)
    assert (
        one.refused("write_file", path="w.bin", content="***", encoding="base64")["code"]
        == Fault.BAD_PARAMETERS
    )


def test_paths_stay_in_the_work_folder(agent: Started, tmp_path: Path) -> None:
    one = agent()
    one.ask("session.start")
    (tmp_path / "secret").write_text("held out")
    one.ask("exec", command=f"ln -s {tmp_path / 'secret'} here")
    for path in ("../secret", "here", str(tmp_path / "secret")):
        assert one.refused("read_file", path=path)["code"] == Fault.BAD_PARAMETERS
        assert one.refused("write_file", path=path, content="x")["code"] == Fault.BAD_PARAMETERS
    assert (tmp_path / "secret").read_text() == "held out"


def test_a_command_that_takes_too_long_is_ended(agent: Started) -> None:
    one = agent()
    one.ask("session.start")
    done = one.ask("exec", command="echo begun; sleep 60", timeout=0.5)
    assert done["timed_out"]
    assert done["output"] == "begun\n"


def test_the_deadline_ends_commands_and_is_told(agent: Started) -> None:
    one = agent()
    one.ask("session.start", minutes=3 / 60)
    one.ask("write_file", path="answer.txt", content="8")
    one.send("exec", command="sleep 100").get(timeout=30)
    wait_until(lambda: bool(one.heard("closed")), 90, "the end of the session")
    assert one.heard("deadline") == [{}]
    assert one.refused("write_file", path="late.txt", content="x")["code"] == Fault.REFUSED
    assert one.refused("score")["code"] == Fault.REFUSED
    assert one.ask("status")["counted"]["raw"] == 8.0, "the final state is scored"


def test_an_agent_that_hangs_up_leaves_its_session_and_may_take_it_up_again(
    agent: Started, home: Path
) -> None:
    one = agent()
    one.ask("session.start")
    assert one.hang_up() == Exit.OK
    (record,) = Store(home).records()
    again = agent("--resume", record.session)
    assert again.ask("status")["phase"] == "running"
    assert again.notifications == [], "the past is not told again"


def test_hanging_up_can_mean_submitting(agent: Started, home: Path, tmp_path: Path) -> None:
    one = agent("tiny_sum", "--isolation", "none", "--on-exit", "submit", "--workdir", str(tmp_path / "w"))
    one.ask("session.start")
    assert one.hang_up() == Exit.OK
    (record,) = Store(home).records()
    assert record.closed()


def test_a_killed_host_is_back_for_the_next_request(agent: Started, home: Path) -> None:
    one = agent()
    one.ask("session.start")
    (record,) = Store(home).records()
    os.kill(host_pid(record), signal.SIGKILL)
    assert one.ask("status")["phase"] == "running"
    one.ask("note", text="still here")


def test_what_the_operator_fixed_an_agent_cannot_change(agent: Started, tmp_path: Path) -> None:
    one = agent("tiny_sum", "--isolation", "none", "--minutes", "5", "--workdir", str(tmp_path / "w"))
    assert one.refused("session.start", minutes=500)["code"] == Fault.REFUSED
    assert one.refused("session.start", environment="restricted_mlm")["code"] == Fault.REFUSED
    assert one.ask("session.start", minutes=5)["budget_ms"] == 300_000
    assert one.refused("session.start")["code"] == Fault.REFUSED, "one process, one session"


def test_an_environment_may_be_named_by_the_agent_where_nobody_did(agent: Started) -> None:
    one = agent("--on-exit", "submit")
    assert one.refused("session.start")["code"] == Fault.BAD_PARAMETERS
    assert "did you mean 'tiny_sum'" in one.refused("session.start", environment="tiny_sun")["message"]


def test_nonsense_is_answered_and_ends_nothing(agent: Started) -> None:
    one = agent()
    assert one.process.stdin is not None
    one.process.stdin.write(b'garbage\n[1,2]\n"x"\n{"id":1}\n\n')
    one.process.stdin.flush()
    assert one.refused("dance")["code"] == Fault.UNKNOWN_METHOD
    assert one.refused("score", volume=11)["code"] == Fault.BAD_PARAMETERS
    assert one.refused("exec")["code"] == Fault.BAD_PARAMETERS
    wait_until(lambda: len(one.notifications) == 4)
    assert {message["error"]["code"] for message in one.notifications} == {
        Fault.NOT_JSON,
        Fault.NOT_A_REQUEST,
    }


def test_hidden_scores_are_hidden_from_an_agent_too(agent: Started, tmp_path: Path) -> None:
    one = agent(
        "tiny_sum", "--isolation", "none", "--variant", "hidden_score", "--workdir", str(tmp_path / "w")
    )
    one.ask("session.start")
    one.ask("write_file", path="answer.txt", content="7.125")
    scored = one.ask("score")
    assert scored["raw"] is None
    everything = json.dumps([one.ask("status"), one.ask("history"), scored, one.notifications])
    assert "7.125" not in everything


def test_every_method_says_what_it_takes(agent: Started) -> None:
    methods = {method["name"]: method for method in agent().ask("rpc.discover")["methods"]}
    assert set(methods) == set(METHODS)
    assert all(method["summary"] and method["params"]["type"] == "object" for method in methods.values())
    assert schema_of(METHODS["exec"])["required"] == ["command"]
