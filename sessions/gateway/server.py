"""The gateway's HTTP side: who may ask what, in the OpenAI protocol; refusals in its error format."""

from __future__ import annotations

import hmac
import itertools
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import Allowance, ModelBudget
from sessions.gateway.calls import CallLog, read_calls, spent_so_far
from sessions.gateway.meter import BudgetSpent, Meter, Reservation, Spent, largest_answer
from sessions.gateway.upstream import Answer, Upstream, UpstreamFailed
from sessions.record.clock import Clock
from sessions.record.events import SESSION_ACCOUNT

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_REQUEST = 8 * 1024 * 1024
PATHS = ("chat/completions", "completions")
FIELDS = frozenset({
    "model", "messages", "prompt", "suffix", "echo", "max_tokens", "max_completion_tokens", "n", "best_of",
    "stream", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "logprobs", "top_logprobs",
    "logit_bias", "presence_penalty", "frequency_penalty", "response_format", "tools", "tool_choice",
    "parallel_tool_calls", "reasoning_effort", "user",
})  # fmt: skip
"""What a request may say: everything else could cost more than is reserved, as another model to fall back on."""


@dataclass(frozen=True)
class Caller:
    """Who holds a key, and which account pays."""

    name: str
    account: str
    meter: Meter


@dataclass(frozen=True)
class Told:
    """One answered call, as its gateway's owner hears of it."""

    caller: Caller
    model: str
    input_tokens: int
    output_tokens: int
    dollars: float


OnCall = Callable[[Told], None]


class Gateway:
    """Serves one session; each caller (the participant, a scoring) has a key of its own."""

    def __init__(
        self, folder: Path, budget: ModelBudget, upstream: Upstream, clock: Clock, on_call: OnCall
    ) -> None:
        path = folder / "calls.jsonl"
        spent, following = spent_so_far(read_calls(path))
        self._budget = budget
        self._numbers = itertools.count(following)
        self.meter = Meter(budget, spent, numbers=self._numbers)
        """Of the shared account."""
        self._log = CallLog(path, clock)
        self._upstream = upstream
        self._on_call = on_call
        self._callers: dict[str, Caller] = {}
        self._runner: web.AppRunner | None = None
        self.port: int | None = None

    def key_for(self, name: str, known: str | None = None, allowance: Allowance | None = None) -> str:
        """Return a bearer key under which `name` is known in the log; `known` is one from before a restart.

        With an `allowance` the caller pays from an account of its own, which begins full.
        """
        key = known or f"rw-{secrets.token_urlsafe(24)}"
        if allowance is None:
            self._callers[key] = Caller(name, SESSION_ACCOUNT, self.meter)
        else:
            meter = Meter(self._budget, limits=allowance, numbers=self._numbers)
            self._callers[key] = Caller(name, name, meter)
        return key

    def forget(self, key: str) -> None:
        """Let a key open nothing any more."""
        self._callers.pop(key, None)

    async def start(self, unix_socket: Path, port: int = 0) -> None:
        """Listen on a Unix socket, for sandboxes without a network, and on a loopback port, for shells.

        `port` is taken where it is free: shells that were opened before a host's restart go on asking there.
        """
        from aiohttp import web

        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.router.add_get("/v1/models", self._models)
        for path in PATHS:
            app.router.add_post(f"/v1/{path}", self._complete)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, _unix(unix_socket)).start()
        loopback = _loopback(port)
        self.port = loopback.getsockname()[1]
        await web.SockSite(self._runner, loopback).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._upstream.close()
        self._log.close()

    async def _models(self, request: web.Request) -> web.Response:
        if self._caller(request) is None:
            return _error(401, "invalid_api_key", "this key opens nothing here")
        models = [{"id": name, "object": "model", "owned_by": "gateway"} for name in self._budget.models]
        return _json(200, {"object": "list", "data": models})

    async def _complete(self, request: web.Request) -> web.Response:
        caller = self._caller(request)
        if caller is None:
            return _error(401, "invalid_api_key", "this key opens nothing here")
        try:
            wanted = _decoded(await request.read(), self._budget)
            reservation = caller.meter.reserve(wanted)
        except ValueError as error:
            return _error(400, "invalid_request_error", str(error))
        except BudgetSpent as error:
            return _error(402, "insufficient_quota", str(error))
        path = request.path.removeprefix("/v1/")
        self._log.began(reservation, caller.name, path, wanted, caller.account)
        answer, cost = await self._asked(caller.meter, reservation, path, wanted)
        self._log.ended(reservation.number, answer.status, answer.body, cost)
        asked, answered = usage_of(answer.body) or (0, 0)
        self._on_call(Told(caller, reservation.model, asked, answered, cost.dollars))
        return _json(answer.status, answer.body)

    async def _asked(
        self, meter: Meter, reservation: Reservation, path: str, wanted: dict[str, Any]
    ) -> tuple[Answer, Spent]:
        try:
            answer = await self._upstream.complete(path, wanted)
        except UpstreamFailed as error:
            body = {"error": {"type": "upstream_error", "code": "upstream_error", "message": str(error)}}
            return Answer(502, body), meter.release(reservation)
        except BaseException:
            meter.settle(reservation, None)
            raise
        if answer.status != 200:
            return answer, meter.release(reservation)
        return answer, meter.settle(reservation, usage_of(answer.body))

    def _caller(self, request: web.Request) -> Caller | None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return next(
            (
                caller
                for key, caller in self._callers.items()
                if hmac.compare_digest(key.encode(), given.encode())
            ),
            None,
        )


def _unix(path: Path) -> socket.socket:
    """Anybody may connect; the key decides."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o666)
    return listening


def _loopback(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def _decoded(body: bytes, budget: ModelBudget) -> dict[str, Any]:
    """Return the request with its answer's length bounded.

    Raises:
        ValueError: it is not a request this gateway passes on; says why and what to do.
    """
    try:
        wanted = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"the request is not a JSON object: {error}") from error
    if wanted.get("model") not in budget.models:
        raise ValueError(
            f"model {wanted.get('model')!r} is not offered; there are {', '.join(budget.models)}"
        )
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if unknown := sorted(wanted.keys() - FIELDS):
        raise ValueError(
            f"{', '.join(unknown)[:200]}: not passed on by this gateway; there are {', '.join(sorted(FIELDS))}"
        )
    if _more_than_text(wanted.get("messages")):
        raise ValueError(
            "messages may hold text only: what pictures, sound and files cost is not known beforehand"
        )
    if wanted.get("stream"):
        raise ValueError("streamed answers cannot be metered; ask with stream=false")
    count = wanted.get("n", 1) or 1
    if not isinstance(count, int) or not 1 <= count <= 128:
        raise ValueError(f"n must be a whole number from 1 to 128, not {count!r}")
    if wanted.get("best_of", count) not in (None, count):
        raise ValueError("best_of is not offered: completions that are not returned would still cost")
    for name in ("max_tokens", "max_completion_tokens"):
        asked = wanted.get(name)
        if asked is not None and (not isinstance(asked, int) or asked < 1):
            raise ValueError(f"{name} must be a whole number above 0, not {asked!r}")
    name = "max_completion_tokens" if wanted.get("max_completion_tokens") else "max_tokens"
    bounded = {name: largest_answer(wanted, budget)}
    return {key: value for key, value in wanted.items() if not key.startswith("max_")} | bounded


def _more_than_text(messages: Any) -> bool:
    """Whether a message holds a part that is no text."""
    contents = (
        [m.get("content") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    )
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(not isinstance(part, dict) or part.get("type") not in ("text", "refusal") for part in parts)


def usage_of(body: dict[str, Any]) -> tuple[int, int] | None:
    """Return the tokens asked and answered, or None where the service does not say it in whole numbers from 0 up."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    asked, answered = (usage.get(key) for key in ("prompt_tokens", "completion_tokens"))
    if type(asked) is int and type(answered) is int and asked >= 0 and answered >= 0:
        return asked, answered
    return None


def _json(status: int, body: dict[str, Any]) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def _error(status: int, code: str, message: str) -> web.Response:
    return _json(status, {"error": {"type": code, "code": code, "message": message}})
