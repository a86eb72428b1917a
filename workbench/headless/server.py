"""JSON-RPC 2.0 on standard input and output, one message a line, requests side by side."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO

import msgspec

from environments.contract import EnvironmentFault
from sessions.clients.protocol import LINE_LIMIT, Fault, Refusal
from sessions.host.opening import WorkTreeUnusable
from workbench.headless.files import PathRefused
from workbench.headless.methods import METHODS, described
from workbench.headless.session import HeadlessSession

_encoder = msgspec.json.Encoder()
Write = Callable[[bytes], None]


class Server:
    """Answers the requests of one agent."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._tasks: set[asyncio.Task[None]] = set()
        self.session: HeadlessSession | None = None

    def notify(self, method: str, parameters: dict[str, Any]) -> None:
        """Tell the agent something it did not ask for."""
        self._send({"jsonrpc": "2.0", "method": method, "params": parameters})

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Answer until the agent has nothing more to say, then until all it asked is answered."""
        async for line in lines:
            if line.strip():
                task = asyncio.create_task(self._answer(line))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, line: bytes) -> None:
        number: Any = None
        try:
            number, method, parameters = _request(line)
            result = await self.call(method, parameters)
            if number is not None:
                self._send({"jsonrpc": "2.0", "id": number, "result": {**result, **await self._figures()}})
        except Refusal as refusal:
            error = {"code": int(refusal.fault), "message": str(refusal), "data": await self._figures()}
            self._send({"jsonrpc": "2.0", "id": number, "error": error})

    async def call(self, method: str, parameters: Any) -> dict[str, Any]:
        """Carry out one method.

        Raises:
            Refusal: it is unknown or malformed, not allowed now, or something of ours broke.
        """
        if method == "rpc.discover":
            return described()
        known = METHODS.get(method)
        if known is None:
            raise Refusal(f"no method {method!r}; there are {', '.join(METHODS)}", Fault.UNKNOWN_METHOD)
        assert self.session is not None
        try:
            return await known.run(self.session, msgspec.convert(parameters, known.parameters))
        except msgspec.ValidationError as error:
            raise Refusal(f"{method}: {error}", Fault.BAD_PARAMETERS) from error
        except (
            PathRefused,
            WorkTreeUnusable,
            FileNotFoundError,
            IsADirectoryError,
            NotADirectoryError,
        ) as error:
            raise Refusal(str(error), Fault.BAD_PARAMETERS) from error
        except (EnvironmentFault, OSError) as error:
            raise Refusal(str(error), Fault.INFRASTRUCTURE) from error
        except Refusal:
            raise
        except ValueError as error:
            raise Refusal(f"{method}: {error}", Fault.BAD_PARAMETERS) from error
        except Exception as error:
            raise Refusal(f"{method}: {type(error).__name__}: {error}", Fault.INTERNAL) from error

    async def _figures(self) -> dict[str, Any]:
        assert self.session is not None
        return await self.session.figures()

    def _send(self, message: dict[str, Any]) -> None:
        self._write(_encoder.encode(message) + b"\n")


def _request(line: bytes) -> tuple[Any, str, Any]:
    try:
        request = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Refusal(f"not JSON: {error}", Fault.NOT_JSON) from error
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise Refusal(
            "not a request: it needs `method`, and `id` where an answer is wanted", Fault.NOT_A_REQUEST
        )
    return request.get("id"), request["method"], request.get("params", {})


class Stdio:
    """Standard input and output as the agent's alone: whatever else is printed goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", 0)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[self._out.write(view) or 0 :]

    async def lines(self, source: BinaryIO | None = None) -> AsyncIterator[bytes]:
        """Yield lines as they come; a thread reads, so that files, pipes and terminals are all the same."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        stream = source or sys.stdin.buffer

        def read() -> None:
            try:
                while line := stream.readline(LINE_LIMIT):
                    loop.call_soon_threadsafe(queue.put_nowait, line)
                loop.call_soon_threadsafe(queue.put_nowait, None)
            except RuntimeError:
                pass  # the loop has ended before the input did

        threading.Thread(target=read, daemon=True).start()
        while (line := await queue.get()) is not None:
            yield line
