"""Puts a session and a server onto standard input and output."""

from __future__ import annotations

import contextlib
import sys
from hashlib import sha256
from importlib.resources import files

from sessions.clients.protocol import Refusal
from sessions.record.store import Record, Store
from workbench.headless.server import Server, Stdio
from workbench.headless.session import HeadlessSession
from workbench.launch import Wish


async def serve_stdio(wish: Wish, record: Record | None, store: Store, *, submit_on_exit: bool) -> None:
    """Serve one agent until it hangs up; the session goes on without it unless it is to be submitted."""
    stdio = Stdio()
    server = Server(stdio.write)
    session = HeadlessSession(wish, store, server.notify, rules_sha256=rules_sha256())
    server.session = session
    try:
        if record is not None:
            await session.take_up(record)
        with contextlib.suppress(BrokenPipeError):
            await server.serve(stdio.lines())
        await hang_up(session, submit=submit_on_exit)
    finally:
        await session.close()


async def hang_up(session: HeadlessSession, *, submit: bool) -> None:
    """Say what becomes of the session, or hand it in."""
    if session.record is None:
        return
    if submit:
        with contextlib.suppress(Refusal):
            await session.ask("submit")
        await session.ended()
    elif (await session.figures())["phase"] not in {"closed", "finishing"}:
        sys.stderr.write(f"the session {session.record.session} goes on; --resume takes it up again\n")


def rules_sha256() -> str:
    """Return the digest of the rules an agent's operator agrees to."""
    return sha256(files("workbench").joinpath("rules.md").read_bytes()).hexdigest()
