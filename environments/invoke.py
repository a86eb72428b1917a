"""One call into an environment, in a process of its own: `python -m environments.invoke --channel FD`.

Standard input holds one JSON object, then its end::

    {"action": "prepare" | "starter" | "check" | "score",
     "slug": "restricted_mlm",        required
     "profile": "cpu",                required
     "folder": null,                  an environment's folder that is not installed
     "home": null,                    $REBENCH_HOME for this call; default: the variable, or the user's data folder
     "assets": null,                  {"public": PATH, "protected": PATH}; default: the place below home
     "root": null,                    check, score: read-only checkout of the snapshot
     "scratch": null,                 check, score: empty folder of this call
     "seed": 0,                       check, score: fresh for each call
     "gateway": null,                 {"socket": PATH, "key": ...}: the session's way to a model
     "passphrase": null}              default: REBENCH_WORKBENCH_KEY, its key file, or the public key

The file descriptor named by --channel receives lines of JSON: any number of ::

    {"progress": {"stage": "evaluating", "fraction": 0.4}}          fraction may be null

and as the last line exactly one of ::

    {"check": {"problems": [{"what", "where", "hint"}...], "notes": [...]}}
    {"score": {"status", "raw", "message", "details"}}              raw is null unless status is "valid"
    {"starter": {"model.py": "/path/to/source", ...}}
    {"prepared": {"public", "protected", "files", "bytes", "seconds"}}
    {"fault": {"kind": "AssetsMissing", "message": "..."}}

A fault is ours, never the participant's: the class of an EnvironmentFault, `RequestInvalid`, `ScorerBroken` (an exception
in the environment's code) or `Terminated`. No last line (the process was killed) means the same. Standard output and
error are logs only. Exit code 0 with a result, 1 with a fault. SIGTERM ends the call and its worker.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from environments import assets, registry, sealing
from environments.contract import (
    AssetFolders,
    CheckReport,
    EnvironmentFault,
    GatewayAccess,
    PrepareRequest,
    Progress,
    ScoreReport,
    Submission,
    Value,
)
from environments.machine.home import HOME_VARIABLE, home_folder


class Action(StrEnum):
    """What is asked of the environment."""

    PREPARE = "prepare"
    STARTER = "starter"
    CHECK = "check"
    SCORE = "score"


class InvokeRequest(Value, frozen=True):
    """Standard input, decoded."""

    action: Action
    slug: str
    profile: str
    folder: Path | None = None
    home: Path | None = None
    assets: AssetFolders | None = None
    root: Path | None = None
    scratch: Path | None = None
    seed: int = 0
    passphrase: str | None = None
    gateway: GatewayAccess | None = None


class RequestInvalid(EnvironmentFault):
    """Standard input is not a request."""


class Terminated(BaseException):
    """SIGTERM or SIGINT arrived."""


class Lines:
    """The channel: one JSON object a line, each written whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_inheritable(descriptor, False)

    def progress(self, progress: Progress) -> None:
        fraction = progress.fraction
        self.write("progress", Progress(progress.stage, None if fraction is None else round(fraction, 3)))

    def write(self, key: str, value: Any) -> None:
        line = msgspec.json.encode({key: value}, enc_hook=_encode) + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]


def main(arguments: list[str] | None = None) -> int:
    """Answer one request; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m environments.invoke", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--channel", type=int, required=True, metavar="FD")
    lines = Lines(parser.parse_args(arguments).channel)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, _terminate)
    try:
        key, value = answer(_read_request(sys.stdin.buffer.read()), lines)
        lines.write(key, value)
    except EnvironmentFault as fault:
        return _fault(lines, type(fault).__name__, str(fault))
    except Terminated:
        return _fault(lines, "Terminated", "the call was ended from outside")
    except BaseException as error:  # noqa: BLE001  (whatever an environment raises is a fault, never a score)
        traceback.print_exc()
        return _fault(lines, "ScorerBroken", f"{type(error).__name__}: {error}")
    return 0


def answer(request: InvokeRequest, lines: Lines) -> tuple[str, Any]:
    """Do what is asked; return the last line's key and value.

    Raises:
        EnvironmentFault: ours to mend.
    """
    found = registry.find(request.slug, [request.folder] if request.folder else [])
    profile = found.spec.profile(request.profile)
    home = request.home or home_folder()
    os.environ[HOME_VARIABLE] = str(home)
    folders = request.assets or assets.folders_for(found.spec, request.profile, home)
    passphrase = request.passphrase or sealing.passphrase_from(os.environ)
    environment = registry.load(found)
    if request.action is Action.PREPARE:
        manifest = assets.prepare(environment, found.spec, request.profile, passphrase, home, lines.progress)
        return "prepared", {
            "public": folders.public, "protected": folders.protected,
            "files": len(manifest.files), "bytes": manifest.size, "seconds": manifest.seconds,
        }  # fmt: skip
    if request.action is Action.STARTER:
        wanted = PrepareRequest(
            profile_name=request.profile, profile=profile, assets=folders, passphrase=passphrase
        )
        return "starter", {name: str(path) for name, path in environment.starter(wanted).items()}
    submission = _submission(request, folders, found.spec)
    if request.action is Action.CHECK:
        return "check", _expect(environment.check(submission), CheckReport)
    return "score", _expect(environment.score(submission, lines.progress), ScoreReport)


def _submission(request: InvokeRequest, folders: AssetFolders, spec: Any) -> Submission:
    if request.root is None or request.scratch is None:
        raise RequestInvalid(f"{request.action} needs `root` and `scratch`")
    if not request.root.is_dir():
        raise RequestInvalid(f"the snapshot's checkout {request.root} is not a folder")
    request.scratch.mkdir(parents=True, exist_ok=True)
    return Submission(
        root=request.root, profile_name=request.profile, profile=spec.profile(request.profile), assets=folders,
        scratch=request.scratch, seed=request.seed, gateway=request.gateway,
    )  # fmt: skip


def _expect(report: Any, kind: type[Any]) -> Any:
    if not isinstance(report, kind):
        raise TypeError(f"the environment returned {type(report).__name__} instead of {kind.__name__}")
    return report


def _read_request(content: bytes) -> InvokeRequest:
    try:
        return msgspec.json.decode(content, type=InvokeRequest, dec_hook=_decode)
    except msgspec.DecodeError as error:
        raise RequestInvalid(f"standard input is not a request: {error}") from error


def _fault(lines: Lines, kind: str, message: str) -> int:
    sys.stderr.write(f"{kind}: {message}\n")
    lines.write("fault", {"kind": kind, "message": message})
    return 1


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise Terminated(number)


def _decode(kind: type[Any], value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


def _encode(value: Any) -> Any:
    """Encode paths, and what scorers put into details: numpy's scalars and arrays."""
    if isinstance(value, Path):
        return str(value)
    if callable(plain := getattr(value, "tolist", None)):
        return plain()
    raise NotImplementedError(f"{type(value).__name__} in a report is not plain JSON")


if __name__ == "__main__":
    sys.exit(main())
