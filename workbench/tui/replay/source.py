"""A record fed to the screen up to a time cursor, which can be moved, and can run at any speed."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from typing import Any

from sessions.clients.protocol import Refusal
from sessions.record.clock import Instant
from sessions.record.events import (
    Body,
    Heartbeat,
    ScoreRecorded,
    ScoreRequested,
    SnapshotTaken,
    StartingScoreRecorded,
)
from sessions.record.store import Record
from sessions.record.summary import history, summarise
from sessions.snapshots import SnapshotError
from sessions.telemetry.samples import Sample, read_samples
from workbench.review.changes import answer_diff, compare
from workbench.review.moments import Film, Moment
from workbench.tui.source import Batch, HostFound, Mode, Replaced, Update

SPEEDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600)
FRAME_SECONDS = 0.1
IDLE_CAP_MS = 60_000
"""While playing, a stretch in which nothing happens is shortened to this."""
WINDOW_NS = 600 * 10**9
"""How much telemetry before the cursor is shown."""

Kind = Callable[[Body], bool]


def any_event(body: Body) -> bool:
    return not isinstance(body, Heartbeat)


def any_score(body: Body) -> bool:
    return isinstance(body, ScoreRecorded | StartingScoreRecorded)


def any_change(body: Body) -> bool:
    return isinstance(body, SnapshotTaken | ScoreRequested)


class ReplaySource:
    """Feeds one screen from a record; nothing can be sent to anyone."""

    mode = Mode.REPLAY

    def __init__(self, record: Record, film: Film, *, start: Moment | None = None) -> None:
        self.record = record
        self.film = film
        self.moment = start or film.after(0)
        self.speed = 60
        self._playing: asyncio.Task[None] | None = None
        self._updates: asyncio.Queue[Update | None] = asyncio.Queue()
        self._samples: list[Sample] = []
        self._loading: asyncio.Task[None] | None = None
        self.moved: Callable[[], None] = lambda: None
        """Called after every move of the cursor."""

    # --- what the screen asks of any source ---------------------------------------------------------------

    def now(self) -> Instant:
        return self.moment.now

    async def start(self) -> None:
        self._show()
        self._loading = asyncio.create_task(self._load_samples())

    async def updates(self) -> AsyncIterator[Batch]:
        yield (HostFound(),)
        while (update := await self._updates.get()) is not None:
            while not self._updates.empty():
                # Only where the cursor is now matters.
                later = self._updates.get_nowait()
                if later is None:
                    return
                update = later
            yield (update,)

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Answer from the record, as of the cursor.

        Raises:
            Refusal: it would act on the session.
        """
        state, now = self.moment.state, self.moment.now
        match method:
            case "status":
                return summarise(state, now, proctor=True)
            case "history":
                return {"rows": history(state, proctor=True)}
            case "brief":
                return {
                    "text": self.record.brief.read_text(encoding="utf-8"),
                    "sha256": state.opened.brief_sha256,
                }
            case "diff":
                return await answer_diff(self.record, parameters)
            case "changed":
                return await asyncio.to_thread(self._changed)
            case "details":
                return await asyncio.to_thread(self._details, parameters["score"])
        raise Refusal(f"{method}: this is a record; nothing in it can be changed")

    def _changed(self) -> dict[str, Any]:
        """Return what the latest snapshot changed against the one before it."""
        taken = [s.number for s in self.moment.state.snapshots if s.commit is not None]
        if len(taken) < 2:
            return {"files": [], "unlisted": 0}
        try:
            found = compare(self.record, taken[-2], taken[-1])
        except SnapshotError as error:
            raise Refusal(str(error)) from error
        files = [{"path": c["path"], "kind": c["kind"], "size": c["new_size"]} for c in found["changes"]]
        return {"files": files, "unlisted": found["unlisted"]}

    def _details(self, number: int) -> dict[str, Any]:
        import msgspec

        path = self.record.score_folder(number) / "report.json"
        if not path.exists():
            raise Refusal(f"score {number} has no report")
        found: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        return found

    async def close(self) -> None:
        for task in (self._playing, self._loading):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._updates.put_nowait(None)

    # --- the cursor ---------------------------------------------------------------------------------------

    def go(self, moment: Moment) -> None:
        """Move the cursor."""
        self.moment = moment
        self._show()
        self.moved()

    def seek(self, elapsed_ms: int) -> None:
        """Move to where so much session time was used."""
        self.go(self.film.at_elapsed(elapsed_ms))

    def skip(self, milliseconds: int) -> None:
        """Move along the record's own time."""
        self.go(self.film.at(self.moment.position + milliseconds))

    def step(self, by: int, wanted: Kind = any_event) -> bool:
        """Move to the next (1) or previous (-1) event of a kind; False where there is none."""
        index = self.moment.index
        # Between two events, the one before the cursor is the previous one.
        between = self.moment.position > self.film.times[index]
        found = (
            self.film.next(index, wanted)
            if by > 0
            else self.film.previous(index + (1 if between else 0), wanted)
        )
        if found is None:
            return False
        self.go(self.film.after(found))
        return True

    @property
    def playing(self) -> bool:
        return self._playing is not None and not self._playing.done()

    def toggle(self) -> None:
        """Play, or stop; at the end it begins anew."""
        if self._playing is not None and not self._playing.done():
            self._playing.cancel()
            self._playing = None
        else:
            if self.moment.position >= self.film.length:
                self.go(self.film.after(0))
            self._playing = asyncio.create_task(self._play())
        self.moved()

    def change_speed(self, by: int) -> None:
        place = min(max(0, SPEEDS.index(self.speed) + by), len(SPEEDS) - 1)
        self.speed = SPEEDS[place]
        self.moved()

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        while self.moment.position < self.film.length:
            await asyncio.sleep(FRAME_SECONDS)
            passed, before = loop.time() - before, loop.time()
            self.go(self.film.at(self._next_position(passed)))
        self._playing = None
        self.moved()

    def _next_position(self, seconds: float) -> int:
        """Return where the cursor is after so many seconds of playing; long silences are cut short."""
        position = self.moment.position + max(1, round(seconds * 1000 * self.speed))
        happening = self.film.next_happening(self.moment.position)
        if happening is None:
            return self.film.length
        cap = IDLE_CAP_MS * max(1, self.speed // 60)
        return max(position, happening - cap) if position < happening else position

    def _show(self) -> None:
        self._updates.put_nowait(Replaced(self.moment.state, self._window()))

    # --- telemetry ----------------------------------------------------------------------------------------

    async def _load_samples(self) -> None:
        self._samples = await asyncio.to_thread(lambda: list(read_samples(self.record.telemetry)))
        self._show()

    def _window(self) -> tuple[Sample, ...]:
        """Return the samples of the ten minutes before the cursor; `at` orders them across boots."""
        now = self.moment.now
        end = bisect_right(self._samples, now.at, key=lambda sample: sample.at)
        found = self._samples[max(0, end - 600) : end]
        return tuple(s for s in found if 0 <= now.boottime - s.boottime <= WINDOW_NS)
