"""Failure 20: a paused clock was started again by whoever opened a second shell or logged in again."""

from pathlib import Path

from sessions.clients.client import Client
from tests.sessions.live import live


def test_a_second_client_a_second_shell_and_a_new_host_leave_the_clock_standing(tmp_path: Path) -> None:
    with live(tmp_path) as session:
        session.begin()
        paused = session.ask("pause", reason="break", note="lunch")
        elapsed = paused["elapsed_ms"]
        for _ in range(3):
            with Client(session.record.participant_socket) as another:
                another.request("hello")
                assert another.request("status")["phase"] == "paused"
        session.ask("open_shell")
        assert session.ask("status")["phase"] == "paused"
        session.kill_host()
        found = session.ask("status")
        assert found["phase"] == "paused"
        assert found["elapsed_ms"] == elapsed
        assert session.ask("resume")["phase"] == "running"
