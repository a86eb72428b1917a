"""What may still be written: the artifacts' budget, the disk's floor, and what may go to make room."""

import os
from collections.abc import Collection, Iterable, Mapping

from sessions.snapshots.artifacts import Artifacts, Refused
from sessions.snapshots.values import SkipKind, SnapshotPolicy


class Room:
    """Asked before anything is written for snapshot `number`; evicts older artifacts where that is enough."""

    def __init__(
        self,
        artifacts: Artifacts,
        policy: SnapshotPolicy,
        number: int,
        held_by: Mapping[int, frozenset[str]],
        protected: Collection[int],
    ) -> None:
        self._artifacts, self._policy, self._number = artifacts, policy, number
        self._held_by, self._protected = held_by, protected
        self._in_use: set[str] = set()
        self._blobs = max(0, artifacts.free() - policy.disk_floor_bytes // 2)
        self.evicted: list[str] = []

    def in_use(self, digests: Iterable[str]) -> None:
        """Artifacts that the snapshot being made refers to."""
        self._in_use.update(digests)

    def blob(self, size: int) -> None:
        """Small files may use half of the floor; the other half belongs to the log."""
        if size > self._blobs:
            raise Refused(
                SkipKind.DISK,
                f"not stored: {self._artifacts.free()} bytes are free on the record's disk, and "
                f"{self._policy.disk_floor_bytes // 2} of them are kept for the log",
            )
        self._blobs -= size

    def artifact(self, file: int, now: os.stat_result, deadline: float) -> None:
        """Make room for one large file, or refuse it with its hash."""
        need = min(now.st_size, now.st_blocks * 512)
        over_budget = self._artifacts.used() + need - self._policy.artifact_budget_bytes
        below_floor = need + self._policy.disk_floor_bytes - self._artifacts.free()
        short = max(over_budget, below_floor)
        if short <= 0:
            return
        goes = self.evictable(short)
        if goes:
            self._artifacts.evict(goes, self._number)
            self.evicted += goes
            return
        sha256 = None
        if self._artifacts.expected_seconds(now.st_size) <= self._policy.huge_hash_seconds:
            sha256 = self._artifacts.digest(file, deadline)
            if self._artifacts.has(sha256):
                return
        if over_budget >= below_floor:
            reason = f"the artifacts of this record may take {self._policy.artifact_budget_bytes} bytes"
            raise Refused(SkipKind.ARTIFACTS, f"not stored: {now.st_size} bytes, and {reason}", sha256)
        reason = f"{self._policy.disk_floor_bytes} bytes of the record's disk are to stay free"
        raise Refused(SkipKind.DISK, f"not stored: {now.st_size} bytes, and {reason}", sha256)

    def evictable(self, need: int) -> list[str]:
        """Artifacts worth at least `need` bytes, the oldest snapshots' first; empty where there are not enough.

        What no snapshot holds goes first; what a protected one holds never goes."""
        kept = self._in_use.union(*(self._held_by.get(n, frozenset()) for n in self._protected))
        sizes = {d: size for d, size in self._artifacts.all() if d not in kept}
        newest = {d: n for n in sorted(self._held_by) for d in self._held_by[n]}
        goes, freed = [], 0
        for digest in sorted(sizes, key=lambda d: (newest.get(d, -1), d)):
            if freed >= need:
                break
            goes.append(digest)
            freed += sizes[digest]
        return goes if freed >= need else []
