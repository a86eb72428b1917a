"""Starts a worker, asks it, and turns whatever happens into an outcome."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import ReportProgress
from environments.worker import confine, gpu, reap, staging
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
from environments.worker.output import LogTail, ProgressFilter, printable

_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 97; shift; done; shift; exec "$@"'
_SETTLE_SECONDS = 0.05
_WATCH_SECONDS = 0.1
_END_SECONDS = 5.0
_OURS = 3
"""Processes of the sandbox itself that count against the worker's limit."""


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
        self._job, self._level = job, level
        self._progress = ProgressFilter(report)
        self._masks = (*job.masks, *masks, *confine.hidden_paths(job))
        self._account = confine.free_account() if level in (Level.SANDBOX_ACCOUNT, Level.ACCOUNT) else None
        self._sandboxed = level in (Level.SANDBOX_ACCOUNT, Level.SANDBOX)
        self._folder = staging.temporary_folder(self._account)
        self._group = ControlGroup()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._log = LogTail(int(job.limits.output_mb * 2**20))
        self._tree: reap.Tree | None = None
        self._leader: int | None = None
        self._process_ended = threading.Event()
        self._breach: FailureKind | None = None
        self._asked = (0.0, 0.0)
        self._final: Confinement | None = None

    def ask(
        self, body: Mapping[str, Any], blobs: Mapping[str, bytes], seconds: float | None = None
    ) -> WorkerOutcome:
        """Put one request and wait for its one answer, `seconds` at most (default: the job's limit)."""
        return self.post(body, blobs, seconds) or self.collect()

    def post(
        self, body: Mapping[str, Any], blobs: Mapping[str, bytes], seconds: float | None = None
    ) -> Failed | None:
        """Put one request without waiting; `collect` fetches its answer, due `seconds` from now."""
        assert self._channel is not None
        limit = self._job.limits.seconds if seconds is None else seconds
        began = time.monotonic()
        self._asked = (began, limit)
        if self._channel.has_unread():
            return self._failed(
                FailureKind.PROTOCOL, "the submission wrote to the scorer's channel unasked", began
            )
        try:
            self._channel.send(Message("request", dict(body), dict(blobs)), began + limit)
        except DeadlinePassed:
            return self._failed(FailureKind.TIMEOUT, f"no answer within {limit:g} s", began)
        except ChannelClosed:
            return self._ended(began)
        return None

    def has_said_something(self) -> bool:
        """Whether the worker has written to its channel, or is gone: `collect` would not wait long."""
        assert self._channel is not None
        assert self._process is not None
        return self._channel.has_unread() or self._process.poll() is not None

    def collect(self) -> WorkerOutcome:
        """Wait for the answer to what was posted."""
        began, limit = self._asked
        try:
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

    def freeze(self) -> None:
        """Stop every process of the worker; returns once none can run. `thaw` lets them go on."""
        assert self._tree is not None
        self._tree.freeze()

    def thaw(self) -> None:
        assert self._tree is not None
        self._tree.thaw()

    def concluded(self, outcome: WorkerOutcome) -> WorkerOutcome:
        """Hang up, close the worker, and return `outcome` with the proof of emptiness in it.

        Our side in the worker ends at once when we hang up. If more comes instead, or nothing ends, the answer was not
        sent by it when the participant's code had returned, and does not count.
        """
        if isinstance(outcome, Answered):
            outcome = self._refused_if_not_over(outcome)
        self.close()
        changes = {"confinement": self.confinement(), "log": self._log.text()}
        return type(outcome)(**{**vars(outcome), **changes})

    def _refused_if_not_over(self, answered: Answered) -> WorkerOutcome:
        assert self._channel is not None
        began = time.monotonic() - answered.seconds
        self._channel.hang_up()
        try:
            self._channel.receive(time.monotonic() + _END_SECONDS)
        except ChannelClosed:
            return answered
        except DeadlinePassed:
            return self._failed(FailureKind.PROTOCOL, "an answer was sent before the work was over", began)
        except ProtocolBroken as error:
            return self._failed(FailureKind.PROTOCOL, f"after its answer the submission sent {error}", began)
        return self._failed(FailureKind.PROTOCOL, "more than one answer was sent", began)

    def confinement(self) -> Confinement:
        """Return what is in force; complete only once the worker is closed."""
        if self._final is not None:
            return self._final
        isolated = self._sandboxed or self._level is Level.ACCOUNT
        counted = "rlimit" if self._limits_processes() else "watch"
        return Confinement(
            level=self._level,
            network="shared" if self._job.network else "none" if isolated else "open",
            memory=f"cgroup{self._group.version}" if self._group.version else "rlimit+watch",
            processes="cgroup" if "pids" in self._group.folders else counted,
        )

    def start(self) -> None:
        """Start the process and wait until our own part of it is ready."""
        entry = staging.stage(self._job, self._folder / "stage", self._account)
        if self._account is not None:
            staging.open_mounts(self._job.mounts.values(), self._account)
        limits = self._job.limits
        self._group = ControlGroup.create(
            int(limits.memory_gb * 2**30), limits.processes + _OURS, limits.cpus
        )
        self._tree = reap.Tree(self._group, self._account, own_namespace=self._sandboxed)
        ours, theirs = socket.socketpair()
        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            self._spawn(theirs)
            theirs.close()
            self._channel = Channel(ours, nonce, int(limits.answer_mb * 2**20), self._leader)
            self._channel.send_line(self._settings(entry, nonce))
            message = self._channel.receive(time.monotonic() + limits.start_seconds)
        except (ChannelClosed, DeadlinePassed, ProtocolBroken, OSError) as error:
            code = self._ended_with()
            self.close()
            raise WorkerUnavailable(self._why_not_started(error, code)) from error
        finally:
            theirs.close()
        if message.kind != "started":
            raise WorkerUnavailable(f"the worker began with {message.kind!r} instead of `started`")
        self._tree.look()
        if self._group.version is None or "pids" not in self._group.folders:
            threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """Kill whatever is left, prove it, and remove the worker's traces. Safe to call twice."""
        if self._final is not None:
            return
        self._process_ended.set()
        emptiness, survivors = self._tree.finish() if self._tree else ("nothing-started", 0)
        if self._process is not None:
            self._process.wait()
            self._log.finish()
        self._final = msgspec.structs.replace(
            self.confinement(), emptiness=emptiness, survivors=survivors, gpu_survivors=self._gpu_survivors()
        )
        if self._channel is not None:
            self._channel.close()
        if self._leader is not None:
            os.close(self._leader)
        self._group.remove()
        if self._account is not None:
            staging.take_back(self._job.mounts.values())
        shutil.rmtree(self._folder, ignore_errors=True)

    def _gpu_survivors(self) -> int | None:
        if not self._job.gpus or self._tree is None:
            return 0
        try:
            return gpu.still_held(self._tree.seen)
        except gpu.GpuUnreadable:
            return None

    def _limits_processes(self) -> bool:
        """Whether a per-account limit counts this worker alone: its own account, or (since Linux 5.14) its own namespace."""
        return self._account is not None or (self._sandboxed and _kernel() >= (5, 14))

    def _spawn(self, channel: socket.socket) -> None:
        python = [confine.interpreter(), "-I", "-S", "-B", "-X", "utf8"]
        launcher = Path("environments/worker/launch.py")
        stage = self._folder / "stage"
        inherited = [channel.fileno(), *self._job.descriptors.values()]
        environment: dict[str, str] = {}
        if self._sandboxed:
            options = _piped(confine.sandbox_arguments(self._job, stage, self._account, self._masks))
            inherited.append(options)
            command = [
                confine.program(),
                "--args",
                str(options),
                "--",
                *python,
                str(confine.STAGE / launcher),
            ]
        else:
            home = self._folder / "tmp" / "home"
            home.mkdir(parents=True)
            self._folder.chmod(0o711)
            for folder in (home.parent, home):
                os.chown(folder, self._account or -1, self._account or -1)
            command = [*python, str(stage / launcher)]
            environment = confine.variables(self._job, str(home))
        join = [str(f) for f in self._group.join_files]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _JOIN, "sh", *join, "--", *command, str(channel.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd="/",
            pass_fds=inherited, start_new_session=True,
        )  # fmt: skip
        if self._sandboxed:
            os.close(inherited[-1])
        assert self._process.stdout is not None
        assert self._tree is not None
        self._tree.led_by(self._process.pid)
        with contextlib.suppress(OSError):  # Linux before 5.3
            self._leader = os.pidfd_open(self._process.pid)
        self._log.follow(self._process.stdout.fileno())

    def _settings(self, entry: str, nonce: bytes) -> dict[str, Any]:
        limits = self._job.limits
        rlimits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": int(limits.file_gb * 2**30), "RLIMIT_NOFILE": 4096}
        if self._group.version is None and not self._job.gpus:
            rlimits["RLIMIT_DATA"] = int(limits.memory_gb * 2**30)
        if "pids" not in self._group.folders and self._limits_processes():
            rlimits["RLIMIT_NPROC"] = limits.processes + _OURS
        return {
            "nonce": nonce.hex(), "largest": int(limits.answer_mb * 2**20), "module": entry,
            "packages": confine.package_folders(), "places": staging.places(self._job, self._level, self._folder / "job"),
            "descriptors": dict(self._job.descriptors), "account": self._account, "rlimits": rlimits,
            "isolate": self._level is Level.ACCOUNT and not self._job.network,
        }  # fmt: skip

    def _next_answer(self, deadline: float) -> Message:
        """Return the answer, passing progress on as what it is: text from an untrusted process."""
        assert self._channel is not None
        while True:
            message = self._channel.receive(deadline)
            if message.kind == "progress":
                self._progress.take(message.body)
            elif message.kind in ("answer", "raised"):
                return message
            else:
                raise ProtocolBroken(f"a message of kind {message.kind[:40]!r}")

    def _raised(self, body: dict[str, Any], began: float) -> Failed:
        where = body.get("where") if isinstance(body.get("where"), str) else None
        if body.get("memory") is True:
            return self._failed(FailureKind.OUT_OF_MEMORY, "the submission ran out of memory", began, where)
        name, text = printable(body.get("type"), 60), printable(body.get("text"), 500)
        said = name if self._job.discreet or not text else f"{name}: {text}"
        return self._failed(FailureKind.CRASHED, f"the submission raised {said}", began, where)

    def _ended(self, began: float) -> Failed:
        """Say why the process went away without an answer."""
        code = self._ended_with()
        if self._breach is FailureKind.OUT_OF_MEMORY or self._group.ran_out_of_memory():
            limit = self._job.limits.memory_gb
            return self._failed(
                FailureKind.OUT_OF_MEMORY, f"the submission used more than {limit:g} GB", began
            )
        if self._breach is FailureKind.CRASHED:
            most = self._job.limits.processes
            return self._failed(FailureKind.CRASHED, f"the submission had more than {most} processes", began)
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

    def _ended_with(self) -> int | None:
        """Return the exit code of a process that has just gone, None while it runs."""
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_SETTLE_SECONDS)
        return self._process.poll()

    def _why_not_started(self, error: Exception, code: int | None) -> str:
        limit = self._job.limits.start_seconds
        what = (
            f"was not ready within {limit:g} s"
            if isinstance(error, DeadlinePassed)
            else "ended before it was ready"
        )
        return f"the worker for {self._job.entry.name} {what} ({self._level}, exit code {code}): {self._log.text()[-2000:]}"

    def _watch(self) -> None:
        """Keep the tree under its limits where no control group does."""
        assert self._process is not None
        assert self._tree is not None
        limits = self._job.limits
        while self._final is None and self._process.poll() is None:
            pids = self._tree.look()
            if self._group.version is None and reap.uses_more_than(pids, limits.memory_gb * 2**30):
                self._breach = FailureKind.OUT_OF_MEMORY
            elif "pids" not in self._group.folders and len(pids) > limits.processes + _OURS:
                self._breach = FailureKind.CRASHED
            if self._breach is not None:
                self._process.kill()
                self._tree.strike()
                return
            self._process_ended.wait(_WATCH_SECONDS)


def _piped(arguments: list[str]) -> int:
    """Return the reading end of a pipe that holds `arguments`: on a command line the worker could read our paths."""
    content = b"".join(argument.encode() + b"\0" for argument in arguments)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        if len(content) > fcntl.fcntl(file, fcntl.F_GETPIPE_SZ):
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, len(content))
        file.write(content)
    return reading


def _kernel() -> tuple[int, ...]:
    return tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2])
