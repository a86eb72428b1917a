"""The same methods as tools over the Model Context Protocol, with the official SDK (1.x and 2.x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sessions.clients.protocol import Refusal
from sessions.record.store import Record, Store
from workbench import __version__
from workbench.headless.methods import METHODS, schema_of
from workbench.headless.server import Server
from workbench.headless.session import HeadlessSession
from workbench.headless.stdio import hang_up, rules_sha256
from workbench.launch import Wish

NAME = "rebench-workbench"
INSTRUCTIONS = (
    "A timed research-engineering session. Call session_start, then brief; work with exec, read_file and write_file; "
    "score as often as you like; submit when done. Every result carries time_left_ms; `notices` are warnings and "
    "messages since your last call. At the deadline the work folder is frozen and scored as it stands."
)
QUIET = frozenset({"score_progress", "prepare_progress"})
"""Not kept as notices: by the time they are read they are over."""


class Tools:
    """Tool calls become methods; what happened meanwhile rides along, since few clients show notifications."""

    def __init__(self, wish: Wish, store: Store) -> None:
        self._notices: list[dict[str, Any]] = []
        self._server = Server(lambda _line: None)
        self.session = HeadlessSession(wish, store, self._notice, rules_sha256=rules_sha256())
        self._server.session = self.session

    def _notice(self, method: str, parameters: dict[str, Any]) -> None:
        if method not in QUIET:
            self._notices.append({"notice": method, **parameters})

    async def call(self, tool: str, arguments: Mapping[str, Any] | None) -> tuple[dict[str, Any], bool]:
        """Return the result and whether it is an error."""
        try:
            result, failed = await self._server.call(_method_of(tool), dict(arguments or {})), False
        except Refusal as refusal:
            result, failed = {"error": str(refusal)}, True
        notices, self._notices = self._notices, []
        return {**result, **await self.session.figures(), "notices": notices}, failed


def _method_of(tool: str) -> str:
    return next((name for name in METHODS if tool_name(name) == tool), tool)


def tool_name(method: str) -> str:
    """Return a method's name as a tool: `session.start` is `session_start`."""
    return method.replace(".", "_")


async def serve_mcp(wish: Wish, record: Record | None, store: Store, *, submit_on_exit: bool) -> None:
    """Serve one agent until it hangs up.

    Raises:
        ModuleNotFoundError: the extra `agents` is not installed.
    """
    from mcp.server.stdio import stdio_server

    tools = Tools(wish, store)
    server = _server(tools)
    try:
        if record is not None:
            await tools.session.take_up(record)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        await hang_up(tools.session, submit=submit_on_exit)
    finally:
        await tools.session.close()


def _server(tools: Tools) -> Any:
    from mcp import types
    from mcp.server.lowlevel import Server as ProtocolServer

    schema_field = "input_schema" if "input_schema" in types.Tool.model_fields else "inputSchema"
    error_field = "is_error" if "is_error" in types.CallToolResult.model_fields else "isError"
    content_field = "structured_content" if schema_field == "input_schema" else "structuredContent"
    listed = [
        types.Tool(name=tool_name(name), description=method.summary, **{schema_field: schema_of(method)})
        for name, method in METHODS.items()
    ]

    async def call(name: str, arguments: Mapping[str, Any] | None) -> Any:
        result, failed = await tools.call(name, arguments)
        text = types.TextContent(type="text", text=msgspec.json.encode(result).decode())
        return types.CallToolResult(content=[text], **{error_field: failed, content_field: result})

    if hasattr(ProtocolServer, "call_tool"):
        return _first_kind(ProtocolServer, listed, call)

    async def on_list_tools(_context: Any, _parameters: Any) -> Any:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(_context: Any, parameters: Any) -> Any:
        return await call(parameters.name, parameters.arguments)

    return ProtocolServer(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def _first_kind(server_class: Any, listed: list[Any], call: Any) -> Any:
    """Build a server of the SDK's first major version, which registers handlers with decorators."""
    server = server_class(NAME, version=__version__, instructions=INSTRUCTIONS)

    @server.list_tools()  # type: ignore[untyped-decorator]
    async def list_tools() -> list[Any]:
        return listed

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        return await call(name, arguments)

    return server
