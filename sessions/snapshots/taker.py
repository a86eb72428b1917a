"""From one `take` to one published commit: what is remembered, what is tried, and what failure looks like."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from sessions.snapshots import memory as memories
from sessions.snapshots import tree
from sessions.snapshots.artifacts import Artifacts
from sessions.snapshots.folders import open_root
from sessions.snapshots.lock import Held
from sessions.snapshots.memory import Memory
from sessions.snapshots.objects import Broken, Objects, Unwritten
from sessions.snapshots.reading import Tools
from sessions.snapshots.room import Room
from sessions.snapshots.take import Request, Taken, take_into
from sessions.snapshots.tally import condensed
from sessions.snapshots.values import Manifest, SkippedPath, Snapshot, SnapshotPolicy, SnapshotStatus
from sessions.snapshots.writing import Import

_LISTED_IN_EVENT = 100


class Taker:
    """Takes snapshots into one store, whose lock the caller holds."""

    def __init__(
        self, objects: Objects, artifacts: Artifacts, policy: SnapshotPolicy, memory_file: Path, tools: Tools
    ) -> None:
        self._objects, self._artifacts, self._policy, self._tools = objects, artifacts, policy, tools
        self._memory_file = memory_file
        self._memory: Memory | None = None
        self._held_by: dict[int, frozenset[str]] = {}
        self.damaged: set[int] = set()

    def take(
        self,
        work_tree: Path,
        request: Request,
        numbers: Mapping[int, str],
        protected_numbers: Collection[int],
        held: Held,
    ) -> Snapshot:
        """A snapshot, complete, partial, or failed with the reason; never an old tree for a new one."""
        began = self._tools.clock()
        room = self._room(request.number, numbers, protected_numbers)
        try:
            try:
                return self._attempt(work_tree, request, self.recall(request.parent), room, held, began)
            except Unwritten as refusal:
                if "No space left" in str(refusal):
                    raise
                # Something earlier may be damaged: go by nothing that was stored before.
                return self._attempt(work_tree, self._on_sound_ground(request), None, room, held, began)
        except (OSError, Unwritten, Broken) as error:
            return self._failed(request.number, began, held, f"cannot snapshot {work_tree}: {error}", room)

    def _attempt(
        self, work_tree: Path, request: Request, memory: Memory | None, room: Room, held: Held, began: float
    ) -> Snapshot:
        root = open_root(work_tree)
        writer = None
        try:
            top = os.fstat(root)
            writer = Import(self._objects, held.fd)
            taken = take_into(writer, root, request, self._policy, self._artifacts, room, memory, self._tools)
            saving = memories.Saving(self._memory_file, taken.folders, self._policy, memory)
            work = writer.finish()
            writer = None
        finally:
            os.close(root)
            if writer is not None:
                writer.abort()
        commit = self._objects.commit_of(request.number)
        self._memory = saving.seal(commit, (top.st_dev, top.st_ino))
        self._held_by[request.number] = frozenset(a.sha256 for a in taken.manifest.artifacts)
        return self._snapshot(taken, commit, work, began, held)

    def _snapshot(self, taken: Taken, commit: str, work: str, began: float, held: Held) -> Snapshot:
        return described(taken.manifest, commit, work, self._tools.clock() - began, held.waited)

    def _on_sound_ground(self, request: Request) -> Request:
        """The same request, without a parent that git cannot read."""
        try:
            if request.parent is not None:
                tree.sides(self._objects, request.parent)
        except Broken:
            return replace(request, parent=None)
        return request

    def _failed(self, number: int, began: float, held: Held, problem: str, room: Room) -> Snapshot:
        return Snapshot(
            number=number,
            commit="",
            tree="",
            status=SnapshotStatus.FAILED,
            files=0,
            bytes=0,
            artifacts=0,
            skipped=(SkippedPath(".", problem),),
            excluded=(),
            seconds=self._tools.clock() - began,
            skipped_count=1,
            evicted=tuple(room.evicted),
            waited=held.waited,
            problem=problem,
        )

    def recall(self, commit: str | None = None) -> Memory | None:
        """Our own memory, or the saved one where that speaks of `commit` and ours does not."""
        if self._memory is None or (commit is not None and self._memory.commit != commit):
            saved = memories.load(self._memory_file, self._policy)
            if saved is not None and (self._memory is None or saved.commit == commit):
                self._memory = saved
        return self._memory

    # -- artifacts of the snapshots there are -------------------------------------------------------------

    def _room(self, number: int, numbers: Mapping[int, str], protected_numbers: Collection[int]) -> Room:
        references = self.references(numbers)
        kept = {*protected_numbers, *self.damaged, *([min(numbers)] if numbers else [])}
        return Room(self._artifacts, self._policy, number, references, kept)

    def references(self, numbers: Mapping[int, str]) -> dict[int, frozenset[str]]:
        """Which snapshot refers to which artifacts; one that cannot be read may refer to any, and is in `damaged`."""
        found = {}
        self.damaged.clear()
        for number, commit in numbers.items():
            if number not in self._held_by:
                try:
                    manifest = tree.manifest(self._objects, tree.sides(self._objects, commit))
                except Broken:
                    self.damaged.add(number)
                    found[number] = frozenset(digest for digest, _ in self._artifacts.all())
                    continue
                self._held_by[number] = frozenset(a.sha256 for a in manifest.artifacts)
            found[number] = self._held_by[number]
        return found


def described(manifest: Manifest, commit: str, work: str, seconds: float, waited: float) -> Snapshot:
    return Snapshot(
        number=manifest.number,
        commit=commit,
        tree=work,
        status=manifest.status,
        files=manifest.files,
        bytes=manifest.bytes,
        artifacts=len(manifest.artifacts),
        skipped=condensed(list(manifest.skipped), _LISTED_IN_EVENT),
        excluded=manifest.excluded_total,
        seconds=seconds,
        skipped_count=manifest.skipped_count,
        evicted=manifest.evicted,
        waited=waited,
    )
