import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.audit.verify import verify
from sessions.clients.client import Client, HostGone
from sessions.clients.hosting import SessionOver, connect
from sessions.clients.protocol import Fault, Refusal
from sessions.record.events import ParticipantKind, ScoreRecorded, SessionPolicy, Variant, decode
from sessions.record.fold import fold
from tests.sessions.live import MINUTE, Live, live, until
from tests.sessions.trees import dug


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path) as session:
        yield session


def test_a_session_from_start_to_a_sound_closed_record(session: Live) -> None:
    with pytest.raises(Refusal, match="once the clock runs"):
        session.ask("brief")
    session.begin()
    assert "Tiny" in session.ask("brief")["text"]
    session.solve("3 * x - 1")
    row = session.ask("score", note="a line")
    assert row["status"] == "valid"
    assert row["raw"] < 0.1
    (session.work / "solution.py").write_text("syntax error here")
    assert session.ask("check")["accepted"] is False
    assert session.ask("score")["status"] == "invalid"
    session.ask("pause", reason="break", note="tea")
    assert session.ask("status")["phase"] == "paused"
    session.ask("resume")
    session.ask("note", text="that was it")
    session.ask("submit")
    until(lambda: not session.ask("status")["pending"])
    session.ask("survey", answers={"difficulty": "easy"})
    until(session.record.closed)
    with pytest.raises(SessionOver):
        until(lambda: not connect(session.record), 10)
    report = verify(session.record)
    assert report.sound, report.problems
    assert report.closed
    state = fold(session.events())
    assert state.counted is not None
    assert state.counted.number == 1


def test_a_work_tree_of_any_depth_is_scored_and_leaves_no_copy_behind(session: Live) -> None:
    session.begin()
    session.solve("3 * x - 1")
    with dug(session.work, 1500):
        assert session.ask("score")["status"] == "valid"
        scratch = session.store.home / "scratch" / session.record.session
        until(lambda: not list(scratch.iterdir()))


def test_commands_stand_while_the_clock_stands(session: Live) -> None:
    session.begin()
    ticks = session.work / "ticks"
    loop = "until [ -e enough ]; do echo >> ticks; sleep 0.01; done"
    session.ask("exec", command=f"setsid bash -c '{loop}' & wait", background=True)
    until(lambda: ticks.exists() and ticks.stat().st_size > 3)
    session.ask("pause", reason="break")
    standing = ticks.stat().st_size
    changed = session.ask("changed")  # a walk over the work folder: time for a command that runs to show it
    assert ticks.stat().st_size == standing, changed
    session.ask("resume")
    until(lambda: ticks.stat().st_size > standing)
    (session.work / "enough").touch()


def test_sockets_are_their_owners_alone(session: Live) -> None:
    for path in (session.record.participant_socket, session.record.proctor_socket):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(session.record.proctor_socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(session.record.folder.stat().st_mode) == 0o700


def test_authority_is_the_socket_not_the_message(session: Live) -> None:
    session.begin()
    with Client(session.record.participant_socket) as client:
        with pytest.raises(Refusal) as refused:
            client.request("credit", ms=1000, why="please", by="me")
        assert refused.value.fault is Fault.UNKNOWN_METHOD
    with Client(session.record.proctor_socket) as client:
        assert client.request("credit", ms=1000, why="slow machine", by="ann")["credited_ms"] == 1000


def test_events_come_from_the_first_without_a_gap(session: Live) -> None:
    session.begin()
    with Client(session.record.participant_socket) as client:
        stream = client.notifications("events", from_seq=0)
        session.ask("note", text="now")
        seen: list[int] = []
        for message in stream:
            if message["method"] == "event":
                seen.append(message["params"]["seq"])
                if message["params"]["kind"] == "note_written":
                    break
    assert seen == list(range(len(seen)))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"not json\n", Fault.NOT_JSON),
        (b"[1, 2]\n", Fault.NOT_A_REQUEST),
        (b'{"id": 1}\n', Fault.NOT_A_REQUEST),
        (b'{"id": 1, "method": "fly"}\n', Fault.UNKNOWN_METHOD),
        (b'{"id": 1, "method": "note", "params": {"words": "x"}}\n', Fault.BAD_PARAMETERS),
        (b'{"id": 1, "method": "note", "params": {"text": 7}}\n', Fault.BAD_PARAMETERS),
        (b'{"id": 1, "method": "note", "params": [1]}\n', Fault.BAD_PARAMETERS),
        (b'{"id": 1, "method": "pause", "params": {"reason": "boredom"}}\n', Fault.BAD_PARAMETERS),
        (b'{"id": 1, "method": "score"}\n', Fault.REFUSED),
    ],
)
def test_a_bad_request_gets_a_clear_answer_and_harms_nothing(
    session: Live, line: bytes, fault: Fault
) -> None:
    until(lambda: session.ask("status")["phase"] == "ready")
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(session.record.participant_socket))
        raw.sendall(line)
        answer = json.loads(raw.makefile("rb").readline())
    assert answer["error"]["code"] == fault
    assert session.ask("status")["phase"] == "ready"


def test_ill_typed_figures_and_words_never_reach_the_log(session: Live) -> None:
    with Client(session.record.proctor_socket) as client:
        client.request("message", text="hello", by="ann")
        for method, parameters in (
            ("acknowledge", {"number": True}),
            ("correct", {"seq": 0, "what": ["x"], "why": "because", "by": "ann"}),
            ("force_pause", {"note": {}, "by": "ann"}),
        ):
            with pytest.raises(Refusal) as refused:
                client.request(method, **parameters)
            assert refused.value.fault is Fault.BAD_PARAMETERS
    assert len(session.events()) > 1


def test_what_a_client_asked_for_goes_on_when_it_leaves(session: Live) -> None:
    session.begin()
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(session.record.participant_socket))
        raw.sendall(b'{"id": 1, "method": "score", "params": {"note": "left"}}\n')
        until(lambda: session.ask("history")["rows"][-1]["number"] == 1)
    until(lambda: session.ask("history")["rows"][-1]["status"] == "valid")


def test_hidden_scores_are_logged_and_never_shown(tmp_path: Path) -> None:
    policy = SessionPolicy(budget_ms=30 * MINUTE, variant=Variant.HIDDEN_SCORE)
    with live(tmp_path, policy=policy) as session:
        session.begin()
        session.solve("3 * x - 1")
        row = session.ask("score")
        assert (row["raw"], row["normalised"], row["status"]) == (None, None, "valid")
        (session.work / "solution.py").write_text("no code at all")
        refused = session.ask("score")
        assert (refused["status"], "solution.py" in refused["message"]) == ("invalid", False)
        assert session.ask("status")["best"] is None
        with Client(session.record.participant_socket) as client:
            for message in client.notifications("events", from_seq=0):
                body = message["params"].get("body", {})
                assert body.get("raw") is None
                if message["params"].get("kind") == "score_recorded":
                    assert isinstance(decode(json.dumps(message["params"]).encode()).body, ScoreRecorded)
                    break
        with Client(session.record.proctor_socket) as proctor:
            assert proctor.request("status")["best"]["raw"] is not None


def test_a_command_of_an_agent_is_limited_and_on_record(tmp_path: Path) -> None:
    with live(tmp_path, participant_kind=ParticipantKind.AGENT) as session:
        session.begin()
        done = session.ask("exec", command="pwd; echo $REBENCH_SESSION; exit 3")
        assert done["exit_code"] == 3
        assert done["output"].splitlines() == [str(session.work), session.record.session]
        slow = session.ask("exec", command="sleep 60 & sleep 60", timeout=0.3)
        assert slow["timed_out"]
        big = session.ask("exec", command="head -c 300000 /dev/zero | tr '\\0' x")
        assert big["truncated"]
        assert big["output_bytes"] == 300_000
        assert len(big["output"]) < 70_000
        assert session.ask("exec", command="sleep 300 & echo started > here", background=True) == {
            "background": True
        }
        until(lambda: (session.work / "here").exists())
        assert session.ask("status")["phase"] == "running"
        kinds = [event.kind for event in session.events()]
        assert kinds.count("command_run") == 3


def test_nothing_of_ours_is_written_into_the_work_tree(session: Live) -> None:
    before = sorted(p.name for p in session.work.rglob("*"))
    session.begin()
    session.ask("score")
    session.ask("check")
    assert sorted(p.name for p in session.work.rglob("*")) == before


def test_the_log_is_written_to_a_second_place_too_through_a_host_restart(tmp_path: Path) -> None:
    with live(tmp_path, log_copies=tmp_path / "elsewhere") as session:
        session.begin()
        session.kill_host()
        session.ask("note", text="after")
        copy = tmp_path / "elsewhere" / f"{session.record.session}.events.jsonl"
        assert copy.read_bytes() == session.record.log.read_bytes()


def test_a_dead_socket_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(HostGone, match="no host answers"):
        Client(tmp_path / "none.sock")


def test_the_passphrase_reaches_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBENCH_WORKBENCH_KEY", "open sesame")
    with live(tmp_path, participant_kind=ParticipantKind.AGENT) as session:
        session.begin()
        assert "sesame" not in session.ask("exec", command="env")["output"]
    assert os.environ["REBENCH_WORKBENCH_KEY"] == "open sesame"
