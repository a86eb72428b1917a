"""An engine on a manual clock with a scripted scorer, for tests of what follows from what."""

from pathlib import Path

from sessions.host.engine import Engine
from sessions.host.opening import open_session
from sessions.host.score_queue import ScoreQueue
from sessions.host.scoring import Answer, ScriptedScorer
from sessions.host.snapshotting import Snapshotter
from sessions.host.wiring import Wiring
from sessions.record.clock import ManualClock
from sessions.record.events import SessionPolicy
from sessions.record.log import Journal
from sessions.record.store import Record, Store
from sessions.snapshots import SnapshotStore
from tests.sessions.builders import MINUTE, opening, valid

ME = "participant"


class Bench:
    """One session, which can be killed and started again."""

    def __init__(self, folder: Path, *answers: Answer, **changes: object) -> None:
        self.clock = ManualClock()
        self.scorer = ScriptedScorer(valid(2.0), *answers)
        policy = changes.pop("policy", SessionPolicy(budget_ms=60 * MINUTE, snapshot_every_ms=None))
        self.record: Record = open_session(
            opening(folder, policy=policy, **changes), Store(folder / "home"), clock=self.clock
        )
        self.work = folder / "work"
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.record.log, self.clock)
        store = SnapshotStore(self.record.folder)
        wiring = Wiring.read(self.record.wiring)
        scores = ScoreQueue(self.record, self.journal, store, self.scorer, wiring)
        self.engine = Engine(self.record, self.journal, Snapshotter(self.journal, store, self.work), scores)
        self.engine.recover()

    async def die(self) -> None:
        await self.engine.stop()
        self.journal.close()

    async def ready(self) -> None:
        await self.engine.recorded_first()
        self.engine.consent("0" * 64, ME)

    async def running(self) -> None:
        await self.ready()
        self.engine.start_clock(ME)

    async def scored(self, note: str = "") -> None:
        await self.engine.recorded(await self.engine.score(note, ME))

    def write(self, text: str) -> None:
        (self.work / "answer.txt").write_text(text)
