"""What an agent may ask for: each method with its parameters, described once for JSON-RPC, MCP and the documentation."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from workbench.headless.session import HeadlessSession

Result = dict[str, Any]


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every method's parameters."""


class Start(Parameters, frozen=True, forbid_unknown_fields=True):
    """Open the session and start its clock; what the command line fixed cannot be changed here."""

    environment: str | None = None
    profile: str | None = None
    minutes: Annotated[float, Meta(gt=0)] | None = None


class Nothing(Parameters, frozen=True, forbid_unknown_fields=True):
    """Takes no parameters."""


class Score(Parameters, frozen=True, forbid_unknown_fields=True):
    """Snapshot the work folder and score the snapshot; without `wait` the row is pending and `history` has the result."""

    note: str = ""
    wait: bool = True


class Number(Parameters, frozen=True, forbid_unknown_fields=True):
    number: int


class Text(Parameters, frozen=True, forbid_unknown_fields=True):
    text: str


class Pause(Parameters, frozen=True, forbid_unknown_fields=True):
    reason: Literal["break", "api", "infrastructure", "lost-contact", "crash", "proctor"] = "api"
    note: str = ""


class Exec(Parameters, frozen=True, forbid_unknown_fields=True):
    """Run a command with bash in the work folder; it ends with the time given, or with the session."""

    command: str
    timeout: Annotated[float, Meta(gt=0, le=86_400)] = 120.0
    background: bool = False
    """Answer at once and let it run until it ends or the session does; `timeout` is not used."""


class ReadFile(Parameters, frozen=True, forbid_unknown_fields=True):
    """Read part of a file in the work folder; content that is not UTF-8 comes as base64."""

    path: str
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(gt=0, le=1 << 20)] = 1 << 18


class WriteFile(Parameters, frozen=True, forbid_unknown_fields=True):
    """Write a file in the work folder, making its folders."""

    path: str
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    append: bool = False


class Usage(Parameters, frozen=True, forbid_unknown_fields=True):
    """Report tokens and money used since the last report, for the record."""

    model: str
    input_tokens: Annotated[int, Meta(ge=0)]
    output_tokens: Annotated[int, Meta(ge=0)]
    dollars: Annotated[float, Meta(ge=0)] | None = None


class Survey(Parameters, frozen=True, forbid_unknown_fields=True):
    answers: dict[str, str]


class Method(NamedTuple):
    """One method."""

    summary: str
    parameters: type[Parameters]
    run: Callable[[HeadlessSession, Any], Awaitable[Result]]


def _asks(name: str) -> Callable[[HeadlessSession, Any], Awaitable[Result]]:
    """Return a method that passes its parameters on to the host."""

    async def run(session: HeadlessSession, parameters: Parameters) -> Result:
        return await session.ask(name, **msgspec.structs.asdict(parameters))

    return run


async def _start(session: HeadlessSession, parameters: Start) -> Result:
    return await session.start(parameters.environment, parameters.profile, parameters.minutes)


async def _read_file(session: HeadlessSession, parameters: ReadFile) -> Result:
    piece = await session.read_file(parameters.path, parameters.offset, parameters.limit)
    try:
        content, encoding = piece.content.decode(), "utf-8"
    except UnicodeDecodeError:
        content, encoding = base64.b64encode(piece.content).decode(), "base64"
    end = piece.offset + len(piece.content)
    return {
        "content": content,
        "encoding": encoding,
        "offset": piece.offset,
        "size": piece.size,
        "more": end < piece.size,
    }


async def _write_file(session: HeadlessSession, parameters: WriteFile) -> Result:
    if parameters.encoding == "base64":
        content = base64.b64decode(parameters.content, validate=True)
    else:
        content = parameters.content.encode("utf-8", "surrogateescape")
    return {"size": await session.write_file(parameters.path, content, append=parameters.append)}


METHODS: dict[str, Method] = {
    "session.start": Method("Open the session and start its clock; returns where the work folder is.", Start, _start),
    "brief": Method("Return the task.", Nothing, _asks("brief")),
    "status": Method("Return time, scores and health.", Nothing, _asks("status")),
    "check": Method("Say whether the work would be accepted; no score.", Nothing, _asks("check")),
    "score": Method("Snapshot the work folder and score the snapshot.", Score, _asks("score")),
    "cancel_score": Method("Cancel a scoring that waits or runs.", Number, _asks("cancel_score")),
    "history": Method("Return every score.", Nothing, _asks("history")),
    "note": Method("Write a note into the record.", Text, _asks("note")),
    "pause": Method("Stop the clock, e.g. while a model service is away.", Pause, _asks("pause")),
    "resume": Method("Let the clock run on.", Nothing, _asks("resume")),
    "exec": Method("Run a command with bash in the work folder.", Exec, _asks("exec")),
    "read_file": Method("Read part of a file in the work folder.", ReadFile, _read_file),
    "write_file": Method("Write a file in the work folder.", WriteFile, _write_file),
    "usage": Method("Report tokens and money used, for the record.", Usage, _asks("usage")),
    "acknowledge": Method("Confirm a proctor's message.", Number, _asks("acknowledge")),
    "submit": Method("Hand the work in and end the session.", Nothing, _asks("submit")),
    "survey": Method("Answer the questions after a session.", Survey, _asks("survey")),
}  # fmt: skip


def schema_of(method: Method) -> dict[str, Any]:
    """Return the JSON schema of a method's parameters, without references."""
    (schema,), components = msgspec.json.schema_components([method.parameters])
    found: dict[str, Any] = components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return {key: value for key, value in found.items() if key not in {"title", "description"}}


def described() -> Result:
    """Return all methods with their parameters' schemas."""
    return {
        "methods": [
            {"name": name, "summary": method.summary, "params": schema_of(method)}
            for name, method in METHODS.items()
        ]
    }
