"""Runs an agent's own command in a session: isolated, recorded and ended by the host, handed in when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sessions.clients.protocol import Refusal
from sessions.record.store import Record, Store
from workbench.headless.session import HeadlessSession
from workbench.headless.stdio import rules_sha256
from workbench.launch import Wish
from workbench.review import answers

Say = Callable[[str], None]
LONGEST_SECONDS = 86_400.0
TAIL_SECONDS = 0.2
ENDPOINT_VARIABLE = "REBENCH_ENDPOINT"


async def run_agent(wish: Wish, command: str, store: Store, *, say: Say) -> dict[str, Any]:
    """Open a session, run `command` in its work folder until it ends or time is up, submit, wait for the last score.

    The host runs the command, as it runs an agent's `exec`: what it prints goes into the record and to `say`.

    Raises:
        EnvironmentFault: the environment or the machine is not ready.
        Refusal: the host does not run it.
    """
    told: list[tuple[str, dict[str, Any]]] = []
    session = HeadlessSession(
        wish, store, lambda name, body: told.append((name, body)), rules_sha256=rules_sha256()
    )
    try:
        opened = await session.start(None, None, None)
        record = session.record
        assert record is not None
        say(f"{record.session} is open in {opened['work_tree']}; the agent runs")
        done = await _while_shown(record, _run(session, record, command), say)
        say(f"the agent ended with exit code {done.get('exit_code')} after {done.get('seconds', 0):.0f} s")
        with contextlib.suppress(Refusal):
            await session.ask("submit")
        await session.ended()
    finally:
        await session.close()
    kept = ("exit_code", "timed_out", "seconds", "output_bytes")
    status = await asyncio.to_thread(answers.answer, record, "status", proctor=True)
    return {"session": record.session, "agent": {key: done.get(key) for key in kept}, "status": status}


async def _run(session: HeadlessSession, record: Record, command: str) -> dict[str, Any]:
    """Have the host run the command; a host that dies takes the command with it."""
    settings = {
        ENDPOINT_VARIABLE: str(record.participant_socket),
        "PATH": f"{Path(sys.executable).parent}:$PATH",
    }
    exports = "; ".join(
        f'export {name}="{value}"' if "$" in value else f"export {name}={shlex.quote(value)}"
        for name, value in settings.items()
    )
    return await session.ask("exec", command=f"{exports}; {command}", timeout=LONGEST_SECONDS)


async def _while_shown(record: Record, running: Any, say: Say) -> dict[str, Any]:
    """Pass on what the command prints, as the host stores it."""
    known = set(_outputs(record))
    task: asyncio.Task[dict[str, Any]] = asyncio.ensure_future(running)
    seen = 0
    rest = ""
    while True:
        done = task.done()
        for path in sorted(set(_outputs(record)) - known)[:1]:
            with path.open("rb") as output:
                output.seek(seen)
                news = output.read()
            seen += len(news)
            *lines, rest = (rest + news.decode(errors="replace")).split("\n")
            for line in lines:
                say(line)
        if done:
            if rest:
                say(rest)
            return task.result()
        await asyncio.wait([task], timeout=TAIL_SECONDS)


def _outputs(record: Record) -> list[Path]:
    folder = record.folder / "commands"
    return list(folder.iterdir()) if folder.is_dir() else []
