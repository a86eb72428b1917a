"""One call into an environment: a scorer in its own process group, watched, limited and killed as a tree."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from environments.contract import AssetFolders, CheckReport, GatewayAccess, Progress, ScoreReport, ScoreStatus
from environments.machine.processes import kill_tree
from sessions.record.events import SessionOpened

OnProgress = Callable[[Progress], None]
GRACE_SECONDS = 10.0
"""On top of a scoring's limit: the environment enforces its own with a better message; this ends what outlives it."""
_CHANNEL_LIMIT = 16 * 1024 * 1024


class Call(msgspec.Struct, frozen=True):
    """What `python -m environments.invoke` reads on its standard input."""

    action: str
    """`check` or `score`."""
    slug: str
    profile: str
    root: str
    scratch: str
    seed: int
    assets: dict[str, str]
    """`public` and `protected` folders."""
    folder: str | None = None
    """Where the environment lives, when it is not found by its slug."""
    gateway: dict[str, str | bool] | None = None
    """`socket`, `key` and `own_model`."""

    @classmethod
    def on_snapshot(
        cls,
        action: str,
        opened: SessionOpened,
        root: Path,
        scratch: Path,
        assets: AssetFolders,
        environment_folder: Path | None,
        access: GatewayAccess | None = None,
    ) -> Call:
        """Return the call of `action` on the snapshot in `root`, with a fresh seed."""
        return cls(
            action=action,
            slug=opened.environment.slug,
            profile=opened.profile,
            root=str(root),
            scratch=str(scratch),
            seed=secrets.randbits(32),
            assets={"public": str(assets.public), "protected": str(assets.protected)},
            folder=None if environment_folder is None else str(environment_folder),
            gateway=None
            if access is None
            else {"socket": str(access.socket), "key": access.key, "own_model": access.own_model},
        )


class Answer(msgspec.Struct, frozen=True):
    """How a call ended: a score, a check, or a fault."""

    score: ScoreReport | None = None
    check: CheckReport | None = None
    fault: str | None = None
    """Ours: the environment or its process broke; never the participant's."""
    died: bool = False
    """Whether the scorer's process ended without an answer; worth one more try."""


class Scorer(Protocol):
    """Whoever can carry out a call."""

    async def run(self, call: Call, folder: Path, seconds: float, on_progress: OnProgress) -> Answer:
        """Carry out `call`, leaving logs in `folder`; end it after `seconds`. Cancellation kills it."""


class ProcessScorer:
    """Runs each call as `python -m environments.invoke` in a process group of its own."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "environments.invoke")) -> None:
        self._command = command

    async def run(self, call: Call, folder: Path, seconds: float, on_progress: OnProgress) -> Answer:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        reading, writing = os.pipe()
        with (folder / "stdout.log").open("wb") as out, (folder / "stderr.log").open("wb") as err:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    "--channel",
                    str(writing),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=out,
                    stderr=err,
                    pass_fds=(writing,),
                    start_new_session=True,
                )
            except OSError as error:
                os.close(reading)
                return Answer(fault=f"the scorer could not be started: {error}")
            finally:
                os.close(writing)
        try:
            async with asyncio.timeout(seconds):
                assert process.stdin is not None
                with contextlib.suppress(ConnectionError):
                    process.stdin.write(msgspec.json.encode(call))
                    await process.stdin.drain()
                process.stdin.close()
                answer = await _answer_on(reading, on_progress)
                await process.wait()
        except TimeoutError:
            return _timed_out(call, seconds)
        finally:
            kill_tree(process.pid)
            await process.wait()
        return answer or Answer(fault=_death(process.returncode, folder), died=True)


def _timed_out(call: Call, seconds: float) -> Answer:
    message = f"no answer within the limit of {seconds:g} s"
    if call.action == "check":
        return Answer(fault=message)
    return Answer(score=ScoreReport.rejected(ScoreStatus.TIMEOUT, message))


async def _answer_on(descriptor: int, on_progress: OnProgress) -> Answer | None:
    """Read the channel until the answer stands on it or it ends."""
    reader = asyncio.StreamReader(limit=_CHANNEL_LIMIT)
    pipe = os.fdopen(descriptor, "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while line := await reader.readline():
            message = msgspec.json.decode(line)
            if "progress" in message:
                on_progress(msgspec.convert(message["progress"], Progress))
            else:
                return _answer_in(message)
    except (ValueError, msgspec.DecodeError) as error:
        return Answer(fault=f"the scorer's answer cannot be read: {error}")
    finally:
        transport.close()
    return None


def _answer_in(message: dict[str, Any]) -> Answer:
    if "score" in message:
        return Answer(score=msgspec.convert(message["score"], ScoreReport))
    if "check" in message:
        return Answer(check=msgspec.convert(message["check"], CheckReport))
    fault = message.get("fault", {})
    return Answer(fault=f"{fault.get('kind', 'fault')}: {fault.get('message', message)}")


def _death(code: int | None, folder: Path) -> str:
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    tail = (folder / "stderr.log").read_bytes()[-400:].decode(errors="replace").strip()
    return f"the scorer ended without an answer ({how})" + (f": …{tail}" if tail else "")


class ScriptedScorer:
    """A scorer that answers from a list, for tests above this seam."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.calls: list[Call] = []
        self.hold: asyncio.Event | None = None
        """When set, a call waits for it before it answers."""

    async def run(self, call: Call, folder: Path, seconds: float, on_progress: OnProgress) -> Answer:
        self.calls.append(call)
        on_progress(Progress("scripted", 0.5))
        if self.hold is not None:
            await self.hold.wait()
        return self._answers.pop(0)
