"""Starts a worker, asks it, and turns whatever happens into an outcome."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import Progress, ReportProgress
from environments.worker import confine, reap, staging
from environments.worker.control import ControlGroup
from environments.worker.jobs import (
    Answered,
    Confinement,
    Failed,
    FailureKind,
    Level,
    WorkerJob,
    WorkerOutcome,
    WorkerUnavailable,
)
from environments.worker.messages import (
    NONCE_BYTES,
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Message,
    ProtocolBroken,
)

_LOG_TAIL = 16 * 1024
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 97; shift; done; shift; exec "$@"'
_SETTLE_SECONDS = 0.05


def run_untrusted(
    job: WorkerJob,
    report: ReportProgress | None = None,
    *,
    masks: tuple[Path, ...] = (),
    level: Level | None = None,
) -> WorkerOutcome:
    """Run one job in a worker of its own, which is gone when this returns.

    `masks` come on top of the job's; `level` forces a weaker confinement (for tests).

    Raises:
        WorkerUnavailable: nothing of the participant's ran, so nothing can be held against them.
    """
    with open_worker(job, report, masks=masks, level=level) as worker:
        outcome = worker.ask(job.body, job.blobs)
        return worker.concluded(outcome)


@contextlib.contextmanager
def open_worker(
    job: WorkerJob,
    report: ReportProgress | None = None,
    *,
    masks: tuple[Path, ...] = (),
    level: Level | None = None,
) -> Iterator[Worker]:
    """Start a worker and keep it for several questions; it is killed on the way out.

    Raises:
        WorkerUnavailable: as `run_untrusted`.
    """
    worker = Worker(job, report or (lambda _progress: None), masks, level or confine.best_level())
    try:
        worker.start()
        yield worker
    finally:
        worker.close()


class Worker:
    """One live worker. Made by `open_worker`."""

    def __init__(self, job: WorkerJob, report: ReportProgress, masks: tuple[Path, ...], level: Level) -> None:
        self._job, self._report, self._level = job, report, level
        self._masks = (*job.masks, *masks, *confine.hidden_paths(job))
        self._account = confine.free_account() if level in (Level.SANDBOX_ACCOUNT, Level.ACCOUNT) else None
        self._sandboxed = level in (Level.SANDBOX_ACCOUNT, Level.SANDBOX)
        self._folder = Path(tempfile.mkdtemp(prefix="rebench-worker-"))
        self._group = ControlGroup()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._log = _LogTail(int(job.limits.output_mb * 2**20))
        self._known: set[int] = set()
        self._breach: FailureKind | None = None
        self._final: Confinement | None = None

    def ask(
        self, body: Mapping[str, Any], blobs: Mapping[str, bytes], seconds: float | None = None
    ) -> WorkerOutcome:
        """Put one request and wait for its one answer, `seconds` at most (default: the job's limit)."""
        assert self._channel is not None
        limit = self._job.limits.seconds if seconds is None else seconds
        began = time.monotonic()
        if self._channel.has_unread():
            return self._failed(
                FailureKind.PROTOCOL, "the submission wrote to the scorer's channel unasked", began
            )
        try:
            self._channel.send(Message("request", dict(body), dict(blobs)), began + limit)
            message = self._next_answer(began + limit)
        except DeadlinePassed:
            return self._failed(FailureKind.TIMEOUT, f"no answer within {limit:g} s", began)
        except ProtocolBroken as error:
            return self._failed(FailureKind.PROTOCOL, f"the submission's answer was refused: {error}", began)
        except ChannelClosed:
            return self._ended(began)
        if message.kind == "raised":
            return self._raised(message.body, began)
        return Answered(
            message.body, message.blobs, time.monotonic() - began, self._log.text(), self.confinement()
        )

    def concluded(self, outcome: WorkerOutcome) -> WorkerOutcome:
        """Close the worker and return `outcome` with the proof of emptiness in it.

        An answer followed by more bytes on the channel is no answer: exactly one is allowed.
        """
        assert self._channel is not None
        if isinstance(outcome, Answered) and self._channel.has_unread():
            outcome = self._failed(FailureKind.PROTOCOL, "more than one answer was sent", time.monotonic())
        self.close()
        changes = {"confinement": self.confinement(), "log": self._log.text()}
        return type(outcome)(**{**vars(outcome), **changes})

    def confinement(self) -> Confinement:
        """Return what is in force; complete only once the worker is closed."""
        if self._final is not None:
            return self._final
        memory = f"cgroup{self._group.version}" if self._group.version else "rlimit+watch"
        isolated = self._sandboxed or self._level is Level.ACCOUNT
        return Confinement(
            level=self._level,
            network="shared" if self._job.network else "none" if isolated else "open",
            memory=memory,
            processes="cgroup"
            if "pids" in self._group.folders
            else "rlimit"
            if self._account
            else "unlimited",
        )

    def start(self) -> None:
        """Start the process and wait until our own part of it is ready."""
        entry = staging.stage(self._job, self._folder / "stage", self._account)
        if self._account is not None:
            staging.open_mounts(self._job.mounts.values(), self._account)
        if not self._sandboxed:
            reap.adopt_orphans()
        limits = self._job.limits
        memory = int(limits.memory_gb * 2**30)
        self._group = ControlGroup.create(memory, limits.processes + 3, limits.cpus)
        ours, theirs = socket.socketpair()
        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            self._spawn(theirs)
            self._channel = Channel(ours, nonce, int(limits.answer_mb * 2**20))
            ours.setblocking(True)
            ours.sendall(json.dumps(self._settings(entry, nonce)).encode() + b"\n")
            ours.setblocking(False)
            message = self._channel.receive(time.monotonic() + limits.start_seconds)
        except (ChannelClosed, DeadlinePassed, ProtocolBroken, OSError) as error:
            self.close()
            raise WorkerUnavailable(self._why_not_started(error)) from error
        finally:
            theirs.close()
        if message.kind != "started":
            raise WorkerUnavailable(f"the worker began with {message.kind!r} instead of `started`")
        assert self._process is not None
        self._known = self._group.members() or reap.descendants(self._process.pid)
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """Kill whatever is left, prove it, and remove the worker's traces. Safe to call twice."""
        if self._final is not None:
            return
        emptiness, survivors = "nothing-started", 0
        if self._process is not None:
            pid = self._process.pid
            self._known |= reap.descendants(pid)
            emptiness, survivors = reap.finish(pid, self._group, self._account, self._sandboxed, self._known)
            self._process.wait()
            self._log.finish()
        self._final = msgspec.structs.replace(self.confinement(), emptiness=emptiness, survivors=survivors)
        if self._channel is not None:
            self._channel.close()
        self._group.remove()
        if self._account is not None:
            staging.take_back(self._job.mounts.values())
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self, channel: socket.socket) -> None:
        python = [confine.interpreter(), "-I", "-S", "-B", "-X", "utf8"]
        launcher = Path("environments/worker/launch.py")
        home = self._folder / "tmp" / "home"
        if self._sandboxed:
            stage = self._folder / "stage"
            command = confine.sandbox_command(self._job, stage, self._account, self._masks)
            command += [*python, str(confine.STAGE / launcher), str(channel.fileno())]
            environment: dict[str, str] = {}
        else:
            home.mkdir(parents=True)
            self._folder.chmod(0o711)
            for folder in (home.parent, home):
                os.chown(folder, self._account or -1, self._account or -1)
            command = [*python, str(self._folder / "stage" / launcher), str(channel.fileno())]
            environment = confine.variables(self._job, str(home))
        join = [str(f) for f in self._group.join_files]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _JOIN, "sh", *join, "--", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd="/",
            pass_fds=(channel.fileno(), *self._job.descriptors.values()), start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._log.follow(self._process.stdout.fileno())

    def _settings(self, entry: str, nonce: bytes) -> dict[str, Any]:
        limits = self._job.limits
        rlimits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": int(limits.file_gb * 2**30), "RLIMIT_NOFILE": 4096}
        if self._group.version is None and not self._job.gpus:
            rlimits["RLIMIT_DATA"] = int(limits.memory_gb * 2**30)
        if "pids" not in self._group.folders and self._account is not None:
            rlimits["RLIMIT_NPROC"] = limits.processes
        return {
            "nonce": nonce.hex(), "largest": int(limits.answer_mb * 2**20), "module": entry,
            "packages": confine.package_folders(), "places": confine.places(self._level, self._job.mounts),
            "descriptors": dict(self._job.descriptors), "account": self._account, "rlimits": rlimits,
            "isolate": self._level is Level.ACCOUNT and not self._job.network,
        }  # fmt: skip

    def _next_answer(self, deadline: float) -> Message:
        """Return the answer, passing progress on as what it is: text from an untrusted process."""
        assert self._channel is not None
        while True:
            message = self._channel.receive(deadline)
            if message.kind == "progress":
                self._report(_progress(message.body))
            elif message.kind in ("answer", "raised"):
                return message
            else:
                raise ProtocolBroken(f"a message of kind {message.kind[:40]!r}")

    def _raised(self, body: dict[str, Any], began: float) -> Failed:
        where = body.get("where") if isinstance(body.get("where"), str) else None
        if body.get("memory") is True:
            return self._failed(FailureKind.OUT_OF_MEMORY, "the submission ran out of memory", began, where)
        name, text = _plain(body.get("type"), 60), _plain(body.get("text"), 500)
        said = name if self._job.discreet or not text else f"{name}: {text}"
        return self._failed(FailureKind.CRASHED, f"the submission raised {said}", began, where)

    def _ended(self, began: float) -> Failed:
        """Say why the process went away without an answer."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_SETTLE_SECONDS)
        if self._breach is FailureKind.OUT_OF_MEMORY or self._group.ran_out_of_memory():
            limit = self._job.limits.memory_gb
            return self._failed(
                FailureKind.OUT_OF_MEMORY, f"the submission used more than {limit:g} GB", began
            )
        code = self._process.poll()
        if code in (0, None):
            return self._failed(
                FailureKind.NO_ANSWER, "the submission's process ended without an answer", began
            )
        ended = (
            f"by signal {-code if code < 0 else code - 128}"
            if code < 0 or code > 128
            else f"with code {code}"
        )
        return self._failed(FailureKind.CRASHED, f"the submission's process was ended {ended}", began)

    def _failed(self, kind: FailureKind, message: str, began: float, where: str | None = None) -> Failed:
        seconds = time.monotonic() - began
        self.close()
        return Failed(kind, message, seconds, self._log.text(), self.confinement(), where)

    def _why_not_started(self, error: Exception) -> str:
        limit = self._job.limits.start_seconds
        what = (
            f"was not ready within {limit:g} s"
            if isinstance(error, DeadlinePassed)
            else "ended before it was ready"
        )
        code = None if self._process is None else self._process.poll()
        return f"the worker for {self._job.entry.name} {what} ({self._level}, exit code {code}): {self._log.text()[-2000:]}"

    def _watch(self) -> None:
        """Keep the tree's memory under its limit where no control group does."""
        assert self._process is not None
        if self._group.version is not None:
            return
        limit = self._job.limits.memory_gb * 2**30
        while self._final is None and self._process.poll() is None:
            pids = reap.descendants(self._process.pid)
            self._known |= pids
            if reap.resident_bytes(pids) > limit:
                self._breach = FailureKind.OUT_OF_MEMORY
                reap.kill_until_gone(
                    lambda: reap.descendants(self._process.pid) if self._process else set(), 1.0
                )
                return
            threading.Event().wait(0.1)


class _LogTail:
    """Reads a pipe to its end, whatever comes, and keeps the last part."""

    def __init__(self, keep: int) -> None:
        self._keep = max(1024, min(keep, _LOG_TAIL))
        self._tail = bytearray()
        self._thread: threading.Thread | None = None

    def follow(self, descriptor: int) -> None:
        self._thread = threading.Thread(target=self._read, args=(os.dup(descriptor),), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def text(self) -> str:
        return bytes(self._tail[-self._keep :]).decode("utf-8", errors="replace")

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while content := pipe.read(65536):
                self._tail += content
                if len(self._tail) > 4 * self._keep:
                    del self._tail[: -self._keep]


def _progress(body: dict[str, Any]) -> Progress:
    fraction = body.get("fraction")
    if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        fraction = None
    return Progress(stage=_plain(body.get("stage"), 80) or "working", fraction=fraction and float(fraction))


def _plain(value: object, longest: int) -> str:
    """Return untrusted text as one printable line."""
    text = value if isinstance(value, str) else ""
    return "".join(c if c.isprintable() else " " for c in text)[:longest]
