"""The snapshots of one session: taken one after another, restored, compared, verified, and thinned out."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from sessions.snapshots import tree
from sessions.snapshots.artifacts import Artifacts
from sessions.snapshots.checkout import check_out
from sessions.snapshots.diff import compare
from sessions.snapshots.folders import open_root
from sessions.snapshots.lock import StoreLock
from sessions.snapshots.objects import Broken, Objects, Unwritten, resolve
from sessions.snapshots.reading import Tools
from sessions.snapshots.rules import Rules
from sessions.snapshots.since import changed
from sessions.snapshots.take import Request
from sessions.snapshots.taker import Taker, described
from sessions.snapshots.values import (
    CheckoutReport,
    Entry,
    EvictionReport,
    Manifest,
    PathChange,
    Snapshot,
    SnapshotError,
    SnapshotPolicy,
    SnapshotStatus,
    TreeDiff,
)
from sessions.snapshots.verify import Verifier

_LISTED_IN_EVENT = 100


class SnapshotStore:
    """`folder` is a session's own; this class minds `snapshots.git`, `artifacts` and two small files beside them."""

    def __init__(
        self, folder: Path, policy: SnapshotPolicy | None = None, tools: Tools | None = None
    ) -> None:
        self.folder = folder
        self.policy = policy or SnapshotPolicy()
        self._tools = tools or Tools()
        self._objects = Objects(folder / "snapshots.git")
        self._artifacts = Artifacts(folder / "artifacts")
        self._taker = Taker(
            self._objects, self._artifacts, self.policy, folder / "snapshots.memory", self._tools
        )
        self._taking = folder / "snapshots.taking"
        self._lock = StoreLock(
            folder / "snapshots.lock", self.policy.wait_seconds, self._tools.clock, self._tools.sleep
        )
        self._verifier: tuple[frozenset[tuple[str, int, int, int]], Verifier] | None = None

    @classmethod
    def create(cls, folder: Path, policy: SnapshotPolicy | None = None, tools: Tools | None = None) -> Self:
        """A new, empty store in `folder`, which may exist but hold no snapshots yet."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = cls(folder, policy, tools)
        if store._objects.git_dir.exists():
            raise SnapshotError(f"cannot create a snapshot store: {store._objects.git_dir} is there already")
        try:
            store._objects.create()
        except Unwritten as error:
            raise SnapshotError(f"git cannot create {store._objects.git_dir}: {error}") from error
        store._artifacts.create()
        return store

    @classmethod
    def open(cls, folder: Path, policy: SnapshotPolicy | None = None, tools: Tools | None = None) -> Self:
        """An existing store, after clearing what a killed process may have left in it."""
        store = cls(folder, policy, tools)
        if not (store._objects.git_dir / "objects").is_dir():
            raise SnapshotError(f"there is no snapshot store in {folder}; was it created?")
        store._artifacts.create()
        store.sweep()
        return store

    def close(self) -> None:
        """End the reading git process; the store may be used again."""
        self._objects.close()

    # -- taking -------------------------------------------------------------------------------------------

    def take(
        self,
        work_tree: Path,
        number: int,
        message: str,
        *,
        protected_numbers: Collection[int] = (),
        at: int = 0,
    ) -> Snapshot:
        """The working tree as snapshot `number`, at `at` (seconds since 1970) in git's eyes.

        What could not be stored is in the answer: PARTIAL lists it, FAILED says in `problem` why there is no commit.
        Raises `SnapshotError` for a number already used and `SnapshotBusy` where the store stays locked."""
        with self._lock.held(f"take snapshot {number}") as held:
            self._clear_leftovers()
            numbers = self._objects.numbers()
            if number in numbers:
                raise SnapshotError(
                    f"snapshot {number} exists already, with commit {numbers[number]}; the next free number is "
                    f"{max(numbers) + 1}"
                )
            self._taking.touch(0o600)
            request = Request(number, message, at, numbers[max(numbers)] if numbers else None)
            taken = self._taker.take(work_tree, request, numbers, protected_numbers, held)
            if taken.status is not SnapshotStatus.FAILED:
                self._taking.unlink(missing_ok=True)
            return taken

    # -- reading ------------------------------------------------------------------------------------------

    def numbers(self) -> tuple[int, ...]:
        return tuple(self._objects.numbers())

    def snapshot(self, ref: int | str) -> Snapshot:
        """A taken snapshot described again, as after a crash between its commit and its event."""
        where = self._sides(ref)
        manifest = self.manifest(ref)
        return described(manifest, where.commit, where.work, manifest.seconds, 0.0)

    def manifest(self, ref: int | str) -> Manifest:
        try:
            return tree.manifest(self._objects, self._sides(ref))
        except Broken as error:
            raise SnapshotError(f"snapshot {ref} cannot be read: {error}") from error

    def entries(self, ref: int | str) -> tuple[Entry, ...]:
        """Every stored path, folders before their contents."""
        return tuple(entry for _, entry in tree.entries(self._objects, self._sides(ref)))

    def checkout(self, ref: int | str, into: Path) -> CheckoutReport:
        try:
            return check_out(self._objects, self._artifacts, resolve(self._objects, ref), into)
        except Broken as error:
            raise SnapshotError(f"snapshot {ref} cannot be restored: {error}") from error

    def diff(self, old: int | str, new: int | str) -> TreeDiff:
        try:
            return compare(self._objects, resolve(self._objects, old), resolve(self._objects, new))
        except Broken as error:
            raise SnapshotError(f"snapshots {old} and {new} cannot be compared: {error}") from error

    def changed_since(self, ref: int | str, work_tree: Path) -> tuple[PathChange, ...]:
        commit = resolve(self._objects, ref)
        root = open_root(work_tree)
        try:
            top = os.fstat(root)
            memory = self._taker.recall()
            usable = memory if memory and memory.root == (top.st_dev, top.st_ino) else None
            return changed(root, Rules(self.policy.excludes), self._objects, commit, usable)
        finally:
            os.close(root)

    def verify(self, ref: int | str | None = None) -> tuple[str, ...]:
        """Problems in words, of one snapshot or of all; hashing everything again, each object once."""
        numbers = self._objects.numbers()
        wanted = set(numbers.values()) if ref is None else {resolve(self._objects, ref)}
        verifier = self._verifier_now()
        problems: list[str] = []
        parent = None
        for number, commit in numbers.items():
            if commit in wanted:
                problems += verifier.problems(number, commit, parent)
            parent = commit
        return tuple(problems)

    def _verifier_now(self) -> Verifier:
        """The last one while no file of the store has changed, so that many single calls cost as little as one."""
        stamp = frozenset(_stamps(self._objects.git_dir / "objects", self._artifacts.folder))
        if self._verifier is None or self._verifier[0] != stamp:
            self._verifier = (stamp, Verifier(self._objects, self._artifacts))
        return self._verifier[1]

    def _sides(self, ref: int | str) -> tree.Sides:
        try:
            return tree.sides(self._objects, resolve(self._objects, ref))
        except Broken as error:
            raise SnapshotError(f"snapshot {ref} cannot be read: {error}") from error

    # -- keeping house ------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Remove what a killed process left: half-written packs and artifacts, locks, artifacts nobody refers to."""
        with self._lock.held("sweep the store"):
            self._clear_leftovers()

    def _clear_leftovers(self) -> None:
        """Only with the lock held, and then no other writer lives: every lock file of git's is a dead one's."""
        git_dir = self._objects.git_dir
        for name in ("HEAD.lock", "packed-refs.lock", "config.lock", "index.lock", "shallow.lock", "gc.pid"):
            (git_dir / name).unlink(missing_ok=True)
        refs = git_dir / "refs" / "snapshots"
        if refs.is_dir():
            for lock in refs.glob("*.lock"):
                lock.unlink(missing_ok=True)
        if not self._taking.exists():
            return
        for pattern in ("fast_import_crash_*", "objects/tmp_*", "objects/pack/tmp_*", "objects/pack/.tmp-*"):
            for leftover in git_dir.glob(pattern):
                leftover.unlink(missing_ok=True)
        self._artifacts.sweep()
        with suppress(Broken, Unwritten):  # a damaged store keeps everything
            held = set().union(*self._taker.references(self._objects.numbers()).values())
            for digest, _ in list(self._artifacts.all()):
                if digest not in held:
                    self._artifacts.path(digest).unlink()
        self._taking.unlink(missing_ok=True)

    def evict(self, keep: Collection[int]) -> EvictionReport:
        """Remove every artifact that neither the first snapshot, the newest, nor those in `keep` refer to.

        Trees, manifests and hashes stay; the ledger says what went."""
        with self._lock.held("evict artifacts"):
            numbers = self._objects.numbers()
            references = self._taker.references(numbers)
            kept = {*keep, *self._taker.damaged, *([min(numbers), max(numbers)] if numbers else [])}
            held: set[str] = set().union(*(references.get(n, frozenset()) for n in kept))
            goes = [digest for digest, _ in self._artifacts.all() if digest not in held]
            freed = self._artifacts.evict(goes, max(numbers, default=0))
            return EvictionReport(tuple(goes), freed, self._artifacts.used())

    def repack(self) -> None:
        """All packs into one, with deltas between versions of a file; for a quiet moment."""
        with self._lock.held("repack the store"):
            self._clear_leftovers()
            self._taking.touch(0o600)
            try:
                self._objects.repack()
            except Unwritten as error:
                raise SnapshotError(f"git cannot repack {self._objects.git_dir}: {error}") from error
            self._taking.unlink(missing_ok=True)
            self._objects.close()


def _stamps(*folders: Path) -> Iterator[tuple[str, int, int, int]]:
    for folder in folders:
        for file in folder.rglob("*"):
            with suppress(FileNotFoundError):
                status = file.stat()
                yield file.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns
