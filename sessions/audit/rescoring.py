"""Scoring a snapshot of a record again, long after: the result is a reviewer's event, the old score stays."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from environments.contract import AssetFolders, GatewayAccess, ScoreStatus
from sessions.host.scoring import GRACE_SECONDS, Call, OnProgress, Scorer
from sessions.record.events import Rescored, SessionOpened
from sessions.record.state import ScoreRow
from sessions.record.store import Record
from sessions.snapshots import SnapshotStore, remove_checkout


async def rescore(
    record: Record,
    opened: SessionOpened,
    row: ScoreRow,
    scorer: Scorer,
    assets: AssetFolders,
    *,
    environment_folder: Path | None = None,
    gateway: GatewayAccess | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Rescored:
    """Score the snapshot behind `row` again with this machine's assets; returns what to add to the review.

    Raises:
        ValueError: the row has no snapshot.
    """
    if row.commit is None:
        raise ValueError(f"score {row.number} has no snapshot")
    limits = opened.environment.profile(opened.profile).limits
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="rescore-"))
    try:
        root, scratch, logs = (folder / name for name in ("snapshot", "scratch", "logs"))
        scratch.mkdir()
        await asyncio.to_thread(SnapshotStore(record.folder).checkout, row.commit, root)
        call = Call.on_snapshot("score", opened, root, scratch, assets, environment_folder, gateway)
        answer = await scorer.run(call, logs, limits.score_seconds + GRACE_SECONDS, on_progress)
    finally:
        await asyncio.to_thread(remove_checkout, folder)
    seconds = round(time.monotonic() - began, 3)
    if answer.score is None:
        return Rescored(row.number, None, ScoreStatus.INFRASTRUCTURE, answer.fault or "no answer", seconds)
    return Rescored(row.number, answer.score.raw, answer.score.status, answer.score.message, seconds)
