"""The worker's own side: drops privileges and limits itself, then lets the trusted entry answer requests.

Started as ``python -I -S launch.py FD`` inside the sandbox, from a staged copy, before any participant's code. It sets
``sys.path`` itself, so no ``.pth``, ``sitecustomize``, user site or ``PYTHON*`` variable has a say. Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


class Request:
    """What an entry's `answer(request)` is given."""

    def __init__(self, body: dict[str, Any], blobs: dict[str, bytes], places: Mapping[str, Path],
                 descriptors: Mapping[str, int], progress: Callable[[str, float | None], None]) -> None:  # fmt: skip
        self.body = body
        """The scorer's JSON."""
        self.blobs = blobs
        self.places = places
        """Mount name -> where it is in here, e.g. `places["root"]`."""
        self.descriptors = descriptors
        """Name -> inherited file descriptor (shared memory)."""
        self.progress = progress
        """progress("training", 0.4): shown to the participant."""

    def load(self, file: str, place: str = "root") -> ModuleType:
        """Import `places[place]/file` as a participant's module.

        Its folder goes to the END of `sys.path`: a `json.py` or `torch.py` beside it shadows nothing.
        """
        source = self.places[place] / file
        if str(source.parent) not in sys.path:
            sys.path.append(str(source.parent))
            importlib.invalidate_caches()
        spec = importlib.util.spec_from_file_location(source.stem, source)
        if spec is None or spec.loader is None or not source.is_file():
            raise FileNotFoundError(f"{file} is missing")
        module = importlib.util.module_from_spec(spec)
        if source.stem not in sys.modules:
            sys.modules[source.stem] = module
        spec.loader.exec_module(module)
        return module


def main(descriptor: int) -> None:
    """Read the settings frame, settle in, then answer until the scorer hangs up."""
    end = socket.socket(fileno=descriptor)
    end.setblocking(True)
    end.set_inheritable(False)
    line = b""
    while not line.endswith(b"\n"):
        byte = end.recv(1)
        if not byte:
            os._exit(3)
        line += byte
    settings = json.loads(line)
    stage = Path(__file__).resolve().parents[2]
    sys.path[:] = [str(stage), *(p for p in sys.path if p), *settings["packages"]]
    sys.argv = [settings["module"]]
    from environments.worker.messages import Channel

    channel = Channel(end, bytes.fromhex(settings["nonce"]), settings["largest"])
    _limit(settings["rlimits"])
    _drop_privileges(settings["account"], settings["isolate"])
    Path(os.environ["HOME"]).mkdir(parents=True, exist_ok=True)
    os.chdir(os.environ["HOME"])
    entry = importlib.import_module(settings["module"])
    _serve(channel, entry.answer, settings)


def _serve(channel: Any, answer: Callable[[Request], Any], settings: dict[str, Any]) -> None:
    from environments.worker.messages import ChannelClosed, Message

    places = {name: Path(target) for name, target in settings["places"].items()}

    def progress(stage: str, fraction: float | None = None) -> None:
        channel.send(Message("progress", {"stage": stage, "fraction": fraction}, {}))

    channel.send(Message("started", {}, {}))
    while True:
        try:
            question = channel.receive()
        except ChannelClosed:
            os._exit(0)
        request = Request(question.body, question.blobs, places, settings["descriptors"], progress)
        try:
            body, blobs = answer(request)
            reply = Message("answer", body, blobs)
        except BaseException as error:  # noqa: BLE001  (SystemExit included: a participant may raise anything)
            reply = Message("raised", _describe(error, tuple(places.values())), {})
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # they may be the participant's by now
                stream.flush()
        channel.send(reply)


def _describe(error: BaseException, roots: tuple[Path, ...]) -> dict[str, Any]:
    """Return what was raised and where in the participant's files; the whole traceback goes to the log."""
    with contextlib.suppress(BaseException):  # an exception's own methods are the participant's code
        traceback.print_exception(error)
        sys.stderr.flush()
    try:
        text = str(error)[:2000].encode("utf-8", "replace").decode()
    except BaseException:  # noqa: BLE001  (as above)
        text = ""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if type(error) is SyntaxError and error.filename:
        places.append((error.filename, error.lineno))
    where = None
    for file, line in places:
        for root in roots:
            if file.startswith(f"{root}/"):
                where = f"{file[len(str(root)) + 1 :]}:{line}"
    memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    name = type(error).__name__.encode("utf-8", "replace").decode()
    return {"type": name, "text": text, "where": where, "memory": memory}


def _limit(limits: Mapping[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _drop_privileges(account: int | None, isolate: bool) -> None:
    """Become the unprivileged account; `isolate` first leaves the network where no sandbox has done so."""
    if isolate:
        import ctypes

        new_network, new_ipc = 0x40000000, 0x08000000
        if ctypes.CDLL(None, use_errno=True).unshare(new_network | new_ipc) != 0:
            sys.stderr.write("worker: the network could not be left\n")
        else:
            _raise_loopback()
    if account is None:
        return
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
        import ctypes

        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc/self stays readable for libraries
    if os.geteuid() != account:
        os._exit(4)


def _raise_loopback() -> None:
    """Let this new network's processes talk to each other, as they can in a sandbox."""
    import fcntl
    import struct

    set_flags, up = 0x8914, 1
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up))


if __name__ == "__main__":
    main(int(sys.argv[1]))
