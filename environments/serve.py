"""An environment's own model as a service: `python -m environments.serve`, started by whoever keeps a gateway.

The first line of standard input is one JSON object::

    {"slug": ..., "profile": ..., "folder": null,    the environment, as for environments.invoke
     "assets": {"public": PATH, "protected": PATH},
     "socket": PATH,                                 where it answers, in the OpenAI protocol
     "key": ...}                                     the bearer key it demands

Standard output gets one line, `ready`, once it listens. It answers until standard input ends: whoever started it is gone then.
Asking it directly would cost nothing, so its socket lies where participants cannot reach it, and its key is the gateway's alone.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments import registry, sealing
from environments.contract import (
    AssetFolders,
    EnvironmentFault,
    Model,
    ModelRefused,
    PrepareRequest,
    ProfileUnavailable,
    Value,
)

if TYPE_CHECKING:
    from aiohttp import web

READY = "ready"
LARGEST_REQUEST = 8 * 1024 * 1024


class ServeRequest(Value, frozen=True):
    """The line of standard input, decoded."""

    slug: str
    profile: str
    assets: AssetFolders
    socket: Path
    key: str
    folder: Path | None = None


def main() -> int:
    """Serve until standard input ends; return the exit code."""
    line = sys.stdin.buffer.readline()
    request = msgspec.json.decode(line, type=ServeRequest, dec_hook=lambda kind, value: kind(value))
    try:
        model = load_model(request)
    except EnvironmentFault as fault:
        sys.stderr.write(f"{type(fault).__name__}: {fault}\n")
        return 1
    asyncio.run(_serve(model, request))
    return 0


def load_model(request: ServeRequest) -> Model:
    """Return the model of the environment that `request` names.

    Raises:
        EnvironmentFault: there is none, or what `prepare` should have left is missing.
    """
    found = registry.find(request.slug, [request.folder] if request.folder else [])
    wanted = PrepareRequest(
        profile_name=request.profile,
        profile=found.spec.profile(request.profile),
        assets=request.assets,
        passphrase=sealing.passphrase_from(os.environ),
    )
    make: Any = getattr(registry.load(found), "model", None)
    if make is None:
        raise ProfileUnavailable(f"{request.slug} says `own_model` and its environment.py has no `model`")
    model: Model = make(wanted)
    return model


async def _serve(model: Model, request: ServeRequest) -> None:
    from aiohttp import web

    async def complete(asked: web.Request) -> web.Response:
        given = asked.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), request.key.encode()):
            return _error(401, "this key opens nothing here")
        try:
            wanted = msgspec.json.decode(await asked.read(), type=dict[str, Any])
            return _json(200, await model.answer(asked.path.removeprefix("/v1/"), wanted))
        except (ModelRefused, msgspec.DecodeError) as error:
            return _error(400, str(error))
        except Exception as error:  # noqa: BLE001  (a bug in a model fails one call and no other)
            traceback.print_exc()
            return _error(500, f"the environment's model broke: {type(error).__name__}")

    app = web.Application(client_max_size=LARGEST_REQUEST)
    for path in ("chat/completions", "completions"):
        app.router.add_post(f"/v1/{path}", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    request.socket.unlink(missing_ok=True)
    os.umask(0o177)
    await web.UnixSite(runner, str(request.socket)).start()
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.buffer.read)
    await runner.cleanup()


def _json(status: int, body: dict[str, Any]) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json(status, {"error": {"type": kind, "code": kind, "message": message}})


if __name__ == "__main__":
    sys.exit(main())
