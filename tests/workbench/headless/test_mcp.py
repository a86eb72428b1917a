"""The tools of `headless --mcp`, asked by the official client."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sessions.record.store import Store
from tests.workbench.live import end_hosts
from workbench.headless.mcp_server import tool_name
from workbench.headless.methods import METHODS

pytest.importorskip("mcp", reason="the extra `agents` is not installed")
pytestmark = pytest.mark.timeout(120)


def _result(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.content[0].text)
    return found


async def test_a_session_through_the_official_client(home: Path, tmp_path: Path) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "workbench.cli", "headless", "tiny_sum", "--mcp", "--isolation", "none", "--on-exit", "submit",
              "--workdir", str(tmp_path / "work")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")))},
    )  # fmt: skip
    try:
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {tool_name(name) for name in METHODS}
            refused = await client.call_tool("brief", {})
            assert "session.start first" in _result(refused)["error"]
            assert _result(await client.call_tool("session_start", {}))["phase"] == "running"
            await client.call_tool("write_file", {"path": "answer.txt", "content": "6"})
            scored = _result(await client.call_tool("score", {"note": "six"}))
            assert scored["raw"] == 6.0
            assert scored["time_left_ms"] > 0
            assert {notice["notice"] for notice in scored["notices"]} >= {"score_recorded"}
            wrong = _result(await client.call_tool("exec", {"command": 5}))
            assert "exec" in wrong["error"]
            assert _result(await client.call_tool("submit", {}))["phase"] in {"finishing", "closed"}
        (record,) = Store(home).records()
        assert record.header()["participant_kind"] == "agent"
    finally:
        end_hosts(home)
