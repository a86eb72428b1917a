"""`run`: an agent's own program in a session, handed in when it ends and stopped at the deadline."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.record.store import Store
from tests.waiting import wait_until
from tests.workbench.cli.conftest import Run
from tests.workbench.live import end_hosts
from workbench.cli.exits import Exit

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def options(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    yield ("--isolation", "none", "--workdir", str(tmp_path / "work"), "--json")
    end_hosts(home)


def test_an_agent_works_with_the_same_commands_and_its_work_is_scored(
    run: Run, home: Path, options: tuple[str, ...]
) -> None:
    command = f"{sys.executable} -m workbench.cli brief && echo 7 > answer.txt && {sys.executable} -m workbench.cli score"
    outcome = run("run", "tiny_sum", "--agent", command, *options)
    assert outcome.code == Exit.OK, outcome.err
    result = json.loads(outcome.out)
    assert result["agent"]["exit_code"] == 0, outcome.err
    assert result["status"]["phase"] == "closed"
    assert result["status"]["counted"]["raw"] == 7.0
    assert "# Tiny sum" in outcome.err, "what the agent prints is shown"
    (record,) = Store(home).records()
    assert b"command_run" in record.log.read_bytes()


def test_an_agent_finds_the_socket_in_its_environment(run: Run, options: tuple[str, ...]) -> None:
    asks = (
        "import json, os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['REBENCH_ENDPOINT']); "
        "s.sendall(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'hello', 'params': {}}).encode() + b'\\n'); "
        "print(json.loads(s.makefile().readline())['result']['environment'])"
    )
    outcome = run("run", "tiny_sum", "--agent", f'{sys.executable} -c "{asks}"', *options)
    assert "\ntiny_sum\n" in outcome.err


def test_an_agent_that_never_ends_is_ended_at_the_deadline_with_all_it_started(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    command = f"echo 3 > answer.txt; sleep 300 & echo $! > {tmp_path / 'child'}; wait"
    outcome = run("run", "tiny_sum", "--minutes", str(3 / 60), "--agent", command, *options)
    result = json.loads(outcome.out)
    assert result["status"]["deadline_at"] is not None
    assert result["status"]["counted"]["raw"] == 3.0
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}")
    wait_until(
        lambda: not child.exists() or "Z" in (child / "stat").read_text().split()[2], what="the child's end"
    )


def test_an_agent_that_fails_is_a_record_all_the_same(run: Run, home: Path, options: tuple[str, ...]) -> None:
    result = json.loads(run("run", "tiny_sum", "--agent", "exit 9", *options).out)
    assert result["agent"]["exit_code"] == 9
    assert result["status"]["phase"] == "closed"
    (record,) = Store(home).records()
    assert run("verify", record.session).code == Exit.OK
