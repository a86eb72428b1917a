"""The one process that owns a live session: `python -m sessions.host RECORD`."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path

from sessions.gateway.hosted import HostedGateway
from sessions.gateway.service import OwnModel
from sessions.host.activity import ActivityWatch
from sessions.host.commands import Commands
from sessions.host.dispatch import Dispatcher
from sessions.host.engine import Engine
from sessions.host.participants import Participant, surroundings_of
from sessions.host.score_queue import ScoreQueue
from sessions.host.scoring import ProcessScorer, Scorer
from sessions.host.server import Server
from sessions.host.shells import Shells
from sessions.host.snapshotting import Snapshotter
from sessions.host.wiring import Wiring
from sessions.record.clock import Clock, SystemClock
from sessions.record.events import ActivitySeen, EventUnreadable, Light, Part, SnapshotReason
from sessions.record.log import Journal
from sessions.record.state import Phase
from sessions.record.store import Record, make_runtime_folders
from sessions.snapshots import SnapshotPolicy, SnapshotStore
from sessions.telemetry import STALE_SECONDS, Sample, TelemetryWatch

TICK_SECONDS = 0.5
SLOW_TICKS = 20
"""Disk, activity and telemetry are looked at every so many ticks."""
DISK_FLOOR = 512 * 1024 * 1024
LINGER_SECONDS = 2.0
"""How long a host stays after its session closed, for clients to hear of it."""


class AlreadyHosted(RuntimeError):
    """Another host owns the session."""


class Host:
    """Builds a session's parts around its log, serves its sockets, and keeps the time."""

    def __init__(self, record: Record, *, clock: Clock | None = None, scorer: Scorer | None = None) -> None:
        self.record = record
        self._lock = _own(record)
        wiring = Wiring.read(record.wiring)
        copy = None if wiring.log_copy is None else Path(wiring.log_copy)
        self.journal = Journal(record.log, clock or SystemClock(), copy_to=copy)
        opened = self.journal.state.opened
        self.work_tree = Path(opened.work_tree)
        store = SnapshotStore(
            record.folder, SnapshotPolicy(excludes=_excludes(opened.environment.snapshot_excludes))
        )
        snapshotter = Snapshotter(self.journal, store, self.work_tree)
        scores = ScoreQueue(record, self.journal, store, scorer or ProcessScorer(), wiring)
        self.engine = Engine(record, self.journal, snapshotter, scores)
        hidden = opened.environment.profile(opened.profile).hidden_packages
        surroundings = surroundings_of(record, self.work_tree, wiring, hidden)
        self._participant = participant = Participant(record, opened.isolation.level, surroundings)
        self.shells = Shells(record, self.journal, participant)
        self.commands = Commands(record, self.journal, participant)
        self._servers = {
            proctor: Server(
                Dispatcher(self.engine, self.shells, self.commands, proctor=proctor), self.journal
            )
            for proctor in (False, True)
        }
        budget = opened.environment.profile(opened.profile).gateway
        own = OwnModel(opened.environment.slug, opened.profile, wiring.assets, wiring.environment_place)
        self._gateway = None if budget is None else HostedGateway(record, self.journal, budget, own)
        scores.gateway = self._gateway
        self.engine.ending.before_closing = self._let_go
        self._telemetry = TelemetryWatch(record.telemetry, self.work_tree, self._on_sample)
        self._activity = ActivityWatch(self.work_tree)
        self._ticks = 0
        self._last_periodic = self.journal.state.elapsed_ms()

    async def run(self) -> None:
        """Own the session until it closes or the process is told to stop."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        self.engine.snapshotter.store.sweep()
        make_runtime_folders(self.record)
        if self._gateway is not None:
            await self._gateway.start()
            self._participant.more_variables = self._gateway.variables()
        self.engine.recover()
        self.shells.adopt()
        await self._servers[True].listen(self.record.proctor_socket)
        await self._servers[False].listen(self.record.participant_socket, owner=self._participant.user_id)
        self._telemetry.start()
        with contextlib.suppress(OSError):
            self._activity.start()
        ticking = asyncio.create_task(self._tick_forever())
        waits = [asyncio.create_task(event.wait()) for event in (stop, self.engine.ending.closed)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if self.engine.ending.closed.is_set():
            await self._linger(stop)
        ticking.cancel()
        await self._shut_down()

    async def _let_go(self) -> None:
        """Let nothing write into the record any more: its closing digest comes next."""
        self.commands.kill_all()
        await self.shells.close_all()
        await self._telemetry.stop()
        if self._gateway is not None:
            await self._gateway.close()

    async def _linger(self, stop: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LINGER_SECONDS)

    async def _shut_down(self) -> None:
        self._activity.stop()
        await self._telemetry.stop()
        await self.engine.stop()
        if self._gateway is not None:
            await self._gateway.close()
        for server in self._servers.values():
            await server.close()
        for path in (self.record.participant_socket, self.record.proctor_socket):
            with contextlib.suppress(OSError):
                path.unlink()
        self.journal.close()
        os.close(self._lock)

    async def _tick_forever(self) -> None:
        while True:
            try:
                self._tick()
            except (OSError, EventUnreadable) as error:
                self._tell_the_log_is_stuck(error)
            await asyncio.sleep(TICK_SECONDS)

    def _tick(self) -> None:
        self.engine.tick()
        self._ticks += 1
        self.shells.look()
        self.commands.hold()
        if self._ticks % SLOW_TICKS == 1:
            self._look_at_disk()
            self._look_at_telemetry()
            self._look_at_activity()
        if self.engine.state.phase is Phase.FINISHING:
            self.commands.kill_all()

    def _tell_the_log_is_stuck(self, error: Exception) -> None:
        for server in self._servers.values():
            server.alarm(f"the record cannot be written: {error}")

    def _look_at_disk(self) -> None:
        free = shutil.disk_usage(self.record.folder).free
        copy = self.journal.copy
        if copy is not None and copy.problem is not None:
            self.engine.alarm(Part.DISK, copy.problem, Light.AMBER)
        elif free < DISK_FLOOR:
            self.engine.alarm(Part.DISK, f"{free // 2**20} MiB left where the record is kept")
        else:
            self.engine.alarm(Part.DISK, "", Light.GREEN)

    def _look_at_telemetry(self) -> None:
        stale = self._telemetry.stale_seconds
        if stale > STALE_SECONDS and self._telemetry.latest is not None:
            self.engine.alarm(Part.GPU, "the poller is silent", Light.AMBER)
        else:
            self.engine.alarm(Part.GPU, "", Light.GREEN)

    def _look_at_activity(self) -> None:
        batch = self._activity.drain()
        if batch is not None and self.engine.state.phase is not Phase.CLOSED:
            self.journal.append(
                ActivitySeen(batch.created, batch.modified, batch.deleted, batch.paths, batch.reason or None)
            )
            self._snapshot_when_due()

    def _snapshot_when_due(self) -> None:
        """Files changed: keep them every so many minutes even when nobody scores."""
        state = self.engine.state
        every = state.opened.policy.snapshot_every_ms
        elapsed = state.elapsed_ms(self.journal.clock.now())
        if every is None or state.phase is not Phase.RUNNING or elapsed - self._last_periodic < every:
            return
        self._last_periodic = elapsed
        self.engine.spawn(self.engine.snapshotter.take(SnapshotReason.PERIODIC))

    def _on_sample(self, sample: Sample) -> None:
        for server in self._servers.values():
            server.telemetry(sample)


def _own(record: Record) -> int:
    """Take the session's lock, which the kernel lets go of when this process ends.

    Raises:
        AlreadyHosted: another host has it.
    """
    descriptor = os.open(record.host_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise AlreadyHosted(f"session {record.session} has a host already") from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _excludes(more: tuple[str, ...]) -> tuple[str, ...]:
    return (*SnapshotPolicy().excludes, *more)


def main() -> None:
    record = Record(Path(sys.argv[1]))
    try:
        host = Host(record)
    except AlreadyHosted as error:
        sys.stderr.write(f"{error}\n")
        return
    asyncio.run(host.run())
