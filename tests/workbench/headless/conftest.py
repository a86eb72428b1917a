"""An agent on the other end of `headless`, and homes as the command line's tests have them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.cli.conftest import home, run
from tests.workbench.live import end_hosts

__all__ = ["home", "run"]

SECONDS = 60.0


class Agent:
    """Speaks JSON-RPC with a `headless` process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workbench.cli", "headless", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        self.notifications: list[dict[str, Any]] = []
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._count = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message and message["id"] in self._answers:
                self._answers[message["id"]].put(message)
            else:
                self.notifications.append(message)

    def send(self, method: str, **parameters: Any) -> queue.Queue[dict[str, Any]]:
        """Ask without waiting."""
        self._count += 1
        self._answers[self._count] = queue.Queue()
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": parameters}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._answers[self._count]

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask, wait, and return the result."""
        answer = self.send(method, **parameters).get(timeout=SECONDS)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refused(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for what is refused, and return the error."""
        answer = self.send(method, **parameters).get(timeout=SECONDS)
        error: dict[str, Any] = answer["error"]
        return error

    def heard(self, method: str) -> list[dict[str, Any]]:
        return [message["params"] for message in self.notifications if message.get("method") == method]

    def hang_up(self) -> int:
        """Close the agent's side and wait for the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=SECONDS)


@pytest.fixture
def agent(home: Path, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    started: list[Agent] = []

    def start(*arguments: str) -> Agent:
        given = arguments or ("tiny_sum", "--isolation", "none", "--workdir", str(tmp_path / "work"))
        started.append(Agent(*given))
        return started[-1]

    yield start
    for one in started:
        # First, since an agent's side starts a host again where it finds none.
        one.process.kill()
        one.process.wait()
    end_hosts(home)
