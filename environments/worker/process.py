"""One worker's process: started under the strongest confinement there is, watched, and ended as a tree."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import secrets
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from environments.worker import confine, gpu, owners, reap, staging
from environments.worker.control import ControlGroup
from environments.worker.jobs import Confinement, FailureKind, Level, WorkerJob, WorkerUnavailable
from environments.worker.messages import NONCE_BYTES, Channel, ChannelClosed, DeadlinePassed, ProtocolBroken
from environments.worker.output import LogTail
from environments.worker.room import MOST_FILES, Room

_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 97; shift; done; shift; exec "$@"'
_SETTLE_SECONDS = 0.05
_WATCH_SECONDS = 0.1
_OURS = 3
"""Processes of the sandbox itself that count against the worker's limit."""


class WorkerProcess:
    """The process side of a worker: everything but what is said to it."""

    def __init__(self, job: WorkerJob, masks: tuple[Path, ...], level: Level) -> None:
        self._job, self._level = job, level
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
        self._breach: tuple[FailureKind, str] | None = None
        self._final: Confinement | None = None
        self.gone_at = math.inf
        """`time.monotonic()` when the tree was found empty."""

    @property
    def log(self) -> str:
        """The tail of what it has printed."""
        return self._log.text()

    @property
    def tree(self) -> reap.Tree:
        assert self._tree is not None, "the worker was not started"
        return self._tree

    def is_gone(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self) -> Channel:
        """Start the process, wait until our own part of it is ready, and return the channel to it.

        Raises:
            WorkerUnavailable: it did not get so far; the message holds what it printed.
        """
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
        written = [mount.source for mount in self._job.mounts.values() if mount.writable]
        room = None if limits.disk_gb is None else Room(written, limits.disk_gb * 2**30)
        if self._group.version is None or "pids" not in self._group.folders or room is not None:
            threading.Thread(target=self._watch, args=(room,), daemon=True).start()
        return self._channel

    def close(self) -> None:
        """Kill whatever is left, prove it, and remove the worker's traces. Safe to call twice."""
        if self._final is not None:
            return
        self._process_ended.set()
        emptiness, survivors = self._tree.finish() if self._tree else ("nothing-started", 0)
        self.gone_at = time.monotonic()
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
        owners.remove(self._folder)

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

    def why_it_ended(self) -> tuple[FailureKind, str]:
        """Say why the process went away without an answer."""
        code = self._ended_with()
        if self._breach is None and self._group.ran_out_of_memory():
            self._breach = self._too_much_memory()
        if self._breach is not None:
            return self._breach
        if code in (0, None):
            return FailureKind.NO_ANSWER, "the submission's process ended without an answer"
        signalled = code < 0 or code > 128
        how = f"by signal {-code if code < 0 else code - 128}" if signalled else f"with code {code}"
        return FailureKind.CRASHED, f"the submission's process was ended {how}"

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

    def _too_much_memory(self) -> tuple[FailureKind, str]:
        return (
            FailureKind.OUT_OF_MEMORY,
            f"the submission used more than {self._job.limits.memory_gb:g} GB",
        )

    def _watch(self, room: Room | None) -> None:
        """Keep the tree under its limits where no control group does."""
        assert self._process is not None
        assert self._tree is not None
        limits = self._job.limits
        while self._final is None and self._process.poll() is None:
            pids = self._tree.look()
            if self._group.version is None and reap.uses_more_than(pids, limits.memory_gb * 2**30):
                self._breach = self._too_much_memory()
            elif "pids" not in self._group.folders and len(pids) > limits.processes + _OURS:
                self._breach = (
                    FailureKind.CRASHED,
                    f"the submission had more than {limits.processes} processes",
                )
            elif room is not None and room.is_overrun(pids):
                self._breach = (
                    FailureKind.CRASHED,
                    f"the submission wrote more than {limits.disk_gb:g} GB or {MOST_FILES:,} files into its folder",
                )
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
