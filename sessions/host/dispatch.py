"""Methods of the protocol, each mapped to what the engine does; parameters are checked strictly."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from sessions.clients.protocol import PARTICIPANT_METHODS, PROCTOR_METHODS, PROTOCOL, Fault, Refusal
from sessions.host.commands import Commands
from sessions.host.engine import Engine
from sessions.host.proctoring import Proctoring
from sessions.host.shells import Shells
from sessions.record.events import ParticipantKind, PauseReason, UsageReported
from sessions.record.state import Phase
from sessions.record.summary import history, summarise

Result = dict[str, Any]
Method = Callable[..., Awaitable[Result]]


class Dispatcher:
    """Answers requests of one authority: a participant's or a proctor's."""

    def __init__(self, engine: Engine, shells: Shells, commands: Commands, *, proctor: bool) -> None:
        self._engine = engine
        self._proctoring = Proctoring(engine.journal, engine.ending)
        self._shells = shells
        self._commands = commands
        self.proctor = proctor
        names = PARTICIPANT_METHODS + (PROCTOR_METHODS if proctor else ())
        self._methods: dict[str, Method] = {
            name: getattr(self, f"_{name}") for name in names if name != "events"
        }

    async def answer(self, method: str, parameters: Any) -> Result:
        """Carry out one request.

        Raises:
            Refusal: it is unknown, malformed, or not allowed now.
        """
        action = self._methods.get(method)
        if action is None:
            raise Refusal(
                f"no method {method!r} on this socket; it has {', '.join(self._methods)}",
                Fault.UNKNOWN_METHOD,
            )
        if not isinstance(parameters, dict):
            raise Refusal(f"{method} takes named parameters", Fault.BAD_PARAMETERS)
        try:
            return await action(**parameters)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise Refusal(f"{method}: {error}", Fault.BAD_PARAMETERS) from error

    @property
    def _by(self) -> str:
        kind = self._engine.state.opened.participant_kind
        return "agent" if kind is ParticipantKind.AGENT else "participant"

    def _proctor_name(self, by: str) -> str:
        return f"proctor {_text(by, 'by')}"

    async def _hello(self) -> Result:
        opened = self._engine.state.opened
        return {
            "session": opened.session,
            "environment": opened.environment.slug,
            "title": opened.environment.title,
            "profile": opened.profile,
            "work_tree": opened.work_tree,
            "phase": self._engine.state.phase.value,
            "authority": "proctor" if self.proctor else "participant",
            "protocol": PROTOCOL,
            "pid": os.getpid(),
        }

    async def _status(self) -> Result:
        return summarise(self._engine.state, self._engine.journal.clock.now(), proctor=self.proctor)

    async def _history(self) -> Result:
        return {"rows": history(self._engine.state, proctor=self.proctor)}

    async def _brief(self) -> Result:
        text = self._engine.brief(self._by)
        return {"text": text, "sha256": self._engine.state.opened.brief_sha256}

    async def _consent(self, rules_sha256: str) -> Result:
        self._engine.consent(_text(rules_sha256, "rules_sha256"), self._by)
        return {}

    async def _start_clock(self) -> Result:
        self._engine.start_clock(self._by)
        return await self._status()

    async def _check(self) -> Result:
        result: Result = msgspec.to_builtins(await self._engine.spawn(self._engine.check(self._by)))
        return result

    async def _score(self, note: str = "", wait: bool = True) -> Result:
        number = await self._engine.spawn(self._engine.score(_text(note, "note"), self._by))
        if wait:
            await self._engine.recorded(number)
        return self._row(number)

    def _row(self, number: int) -> Result:
        row: Result = history(self._engine.state, proctor=self.proctor)[number]
        return row

    async def _cancel_score(self, number: int) -> Result:
        number = _convert(number, int, "number")
        self._engine.cancel_score(number)
        await self._engine.recorded(number)
        return self._row(number)

    async def _note(self, text: str) -> Result:
        self._engine.note(_text(text, "text"), self._by)
        return {}

    async def _pause(self, reason: str = "break", note: str = "") -> Result:
        await self._engine.spawn(self._engine.pause(_reason(reason), _text(note, "note"), self._by))
        return await self._status()

    async def _resume(self) -> Result:
        self._engine.resume(self._by)
        return await self._status()

    async def _submit(self) -> Result:
        self._engine.submit(self._by)
        return await self._status()

    async def _survey(self, answers: dict[str, str]) -> Result:
        self._engine.survey(_convert(answers, dict[str, str], "answers"), self._by)
        return await self._status()

    async def _acknowledge(self, number: int) -> Result:
        self._engine.acknowledge(_convert(number, int, "number"), self._by)
        return {}

    async def _diff(self, old: int, new: int) -> Result:
        return await self._engine.diff(_convert(old, int, "old"), _convert(new, int, "new"))

    async def _changed(self) -> Result:
        return await self._engine.changed()

    async def _exec(self, command: str, timeout: float | None = 120.0, background: bool = False) -> Result:
        if self._engine.state.phase is not Phase.RUNNING:
            raise Refusal(f"cannot run a command: the session is {self._engine.state.phase}")
        limit = None if background else _convert(timeout, float | None, "timeout")
        running = self._engine.spawn(self._commands.run(_text(command, "command"), limit, self._by))
        if background:
            return {"background": True}
        done: Result = await running
        return done

    async def _usage(self, **report: Any) -> Result:
        self._engine.usage(_convert(report, UsageReported, "usage"), self._by)
        return {}

    async def _open_shell(self) -> Result:
        return {"socket": str(await self._shells.open())}

    async def _credit(self, ms: int, why: str, by: str) -> Result:
        self._proctoring.credit(_convert(ms, int, "ms"), _text(why, "why"), self._proctor_name(by))
        return await self._status()

    async def _correct(self, seq: int, what: str, why: str, by: str) -> Result:
        self._proctoring.correct(
            _convert(seq, int, "seq"), _text(what, "what"), _text(why, "why"), self._proctor_name(by)
        )
        return {}

    async def _message(self, text: str, by: str) -> Result:
        return {"number": self._proctoring.message(_text(text, "text"), self._proctor_name(by))}

    async def _end(self, why: str, by: str) -> Result:
        self._proctoring.end(_text(why, "why"), self._proctor_name(by))
        return await self._status()

    async def _force_pause(self, by: str, reason: str = "proctor", note: str = "") -> Result:
        who = self._proctor_name(by)
        await self._engine.spawn(self._engine.pause(_reason(reason), _text(note, "note"), who, proctor=True))
        return await self._status()

    async def _force_resume(self, by: str) -> Result:
        self._engine.resume(self._proctor_name(by), proctor=True)
        return await self._status()

    async def _details(self, score: int) -> Result:
        path = self._engine.record.score_folder(_convert(score, int, "score")) / "report.json"
        if not path.exists():
            raise Refusal(f"score {score} has no report")
        report: Result = msgspec.json.decode(path.read_bytes())
        return report


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise Refusal(f"{name} must be text, not {type(value).__name__}", Fault.BAD_PARAMETERS)
    return value.encode("utf-8", "replace").decode()


def _convert(value: Any, wanted: Any, name: str) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise Refusal(f"{name}: {error}", Fault.BAD_PARAMETERS) from error


def _reason(value: str) -> PauseReason:
    try:
        return PauseReason(value)
    except ValueError:
        known = ", ".join(reason.value for reason in PauseReason)
        raise Refusal(f"no pause reason {value!r}; there are {known}", Fault.BAD_PARAMETERS) from None
