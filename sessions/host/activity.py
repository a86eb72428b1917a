"""What changed in a working tree and when: hints from the kernel at once, and a look every minute that misses nothing."""

import errno
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

import msgspec

from sessions.snapshots.names import child, shown
from sessions.snapshots.rules import Rules
from sessions.snapshots.values import DEFAULT_EXCLUDES, ChangeKind
from sessions.snapshots.walk import Folder, Walked, look

SAMPLE = 20
BURST = 10_000
"""Paths hinted at between two looks; more of them are counted by looking alone, which costs less."""
_BURST_SECONDS = 5.0
"""Between looks while there is nothing but looks."""
_LATE_SECONDS = 2.0
"""How long a hint may be on its way; watchdog holds moves back for half a second."""
_FOLDERS_A_WALK_MISSES = 0.9
"""Below this share of watched folders the watcher does not cover the tree."""
_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
"""The kernel's settings behind a refusal; some releases of watchdog refuse where others watch a part."""


class ActivityBatch(msgspec.Struct, frozen=True):
    """Changes since the last batch. Counts are of paths, not of writes."""

    created: int
    modified: int
    deleted: int
    paths: tuple[str, ...]
    """A sample, printable."""
    degraded: bool = False
    reason: str = ""


class Hints(Protocol):
    """Tells of changes as they happen, as well as it can."""

    def start(self, root: Path, tell: Callable[[ChangeKind | None, str], None]) -> None:
        """Begin; raises OSError where the system refuses. `tell` gets paths below `root`; no kind means a folder."""

    def stop(self) -> None: ...

    def watched(self) -> int | None:
        """How many folders are watched, if that can be known."""


class ActivityWatch:
    """Watches one working tree from `start` to `stop`; never raises, and says when it sees less than everything."""

    def __init__(
        self,
        work_tree: Path,
        *,
        clock: Callable[[], float] = monotonic,
        every_seconds: float = 60.0,
        excludes: tuple[str, ...] = DEFAULT_EXCLUDES,
        hints: Hints | None = None,
    ) -> None:
        self.work_tree = work_tree
        self._clock, self._every = clock, every_seconds
        self._rules = Rules(excludes)
        self._hints = hints
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._pending: dict[str, ChangeKind] = {}
        self._hinted: dict[str, float] = {}
        self._folders_hinted: dict[str, float] = {}
        self._excluded: tuple[str, ...] = ()
        self._before: Mapping[str, Folder] | None = None
        self._hinting = self._resumed = False
        self._troubles: dict[str, str] = {}
        self._told = ""

    # -- what the host calls ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin watching; returns at once, the first look happens in a thread of its own."""
        if self._thread is None:
            self._stopping = False
            self._thread = threading.Thread(target=self._run, name="activity", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End watching; what was seen can still be drained."""
        self._stopping = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None
        self._stop_hints()

    def drain(self) -> ActivityBatch | None:
        """All since the last call; None where nothing changed, neither in the tree nor in how well we see it."""
        with self._lock:
            pending, self._pending = self._pending, {}
            reason = "; ".join(self._troubles[k] for k in sorted(self._troubles))
            told, self._told = self._told, reason
        if not pending and reason == told:
            return None
        kinds = list(pending.values())
        return ActivityBatch(
            created=kinds.count(ChangeKind.ADDED),
            modified=kinds.count(ChangeKind.MODIFIED),
            deleted=kinds.count(ChangeKind.REMOVED),
            paths=tuple(shown(p) for p in list(pending)[:SAMPLE]),
            degraded=bool(reason),
            reason=reason,
        )

    # -- looking ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._start_hints()
        self.look()
        while not self._stopping:
            self._woken.wait(min(self._every, _BURST_SECONDS) if "burst" in self._troubles else self._every)
            self._woken.clear()
            if not self._stopping:
                if "burst" in self._troubles:
                    self._stop_hints()
                self.look()

    def look(self) -> None:
        """One pass over the tree, compared with the last one; also what decides how well the hints do."""
        began = self._clock()
        try:
            walked = look(self.work_tree, self._rules, self._before)
        except OSError as error:
            self._trouble("look", f"the working tree cannot be looked at: {error.strerror or error}")
            return
        self._trouble("look", None)
        self._excluded = tuple(f"{path}/" for path, _, _ in walked.excluded)
        if self._before is not None:
            self._compare(self._before, walked, began)
        self._before = walked.folders
        self._judge_coverage(len(walked.folders))

    def _compare(self, before: Mapping[str, Folder], walked: Walked, began: float) -> None:
        """Count what no hint told of. Created and deleted files that went untold mean that hints were lost."""
        found = list(differences(before, walked.folders))
        if self._hinting and any(path not in self._hinted for _, path in found):
            self._woken.wait(_LATE_SECONDS)  # the hint may be on its way
        with self._lock:
            untold = [(kind, path) for kind, path in found if path not in self._hinted]
            for kind, path in untold:
                self._fold(kind, path)
            # A folder that came, went or moved takes its files along in silence.
            moved = tuple(f"{folder}/" for folder in self._folders_hinted)
            lost = sum(
                kind is not ChangeKind.MODIFIED and not path.startswith(moved) for kind, path in untold
            )
            self._hinted = {p: at for p, at in self._hinted.items() if at >= began}
            self._folders_hinted = {p: at for p, at in self._folders_hinted.items() if at >= began}
        judged = self._hinting and not self._resumed and "burst" not in self._troubles
        told = f"the watcher missed {lost} created or deleted files since the last look"
        self._trouble("lost", told if judged and lost else None)
        self._resumed = False
        if "burst" in self._troubles:
            self._end_burst(over=len(found) <= BURST)

    def _end_burst(self, *, over: bool) -> None:
        if not over:
            self._stop_hints()
            return
        self._trouble("burst", None)
        self._start_hints()
        self._resumed = True  # what changed while nobody listened is not lost but never was told

    def _judge_coverage(self, folders: int) -> None:
        watched = self._hints.watched() if self._hints and self._hinting else None
        if watched is not None and watched < folders * _FOLDERS_A_WALK_MISSES:
            self._trouble(
                "coverage",
                f"{watched} of {folders} folders are watched, the others looked at; raise fs.inotify.max_user_watches (sysctl) where it is below {folders}",
            )
        elif watched is not None:
            self._trouble("coverage", None)

    # -- hints --------------------------------------------------------------------------------------------

    def _start_hints(self) -> None:
        if self._hinting or self._stopping:
            return
        try:
            if self._hints is None:
                from sessions.host.watching import KernelHints

                self._hints = KernelHints()
            self._hints.start(self.work_tree, self._on_hint)
            self._hinting = True
            self._trouble("hints", None)
        except (OSError, RuntimeError, ImportError) as error:
            self._trouble("hints", _no_watcher(error, self._every))

    def _stop_hints(self) -> None:
        if self._hinting and self._hints is not None:
            self._hinting = False
            with suppress(OSError, RuntimeError):
                self._hints.stop()

    def _on_hint(self, kind: ChangeKind | None, path: str) -> None:
        """Called in the watcher's thread, for every event it gets."""
        if path.startswith(self._excluded) or self._rules.names_folder(path):
            return
        with self._lock:
            if len(self._hinted) + len(self._folders_hinted) < BURST:
                (self._hinted if kind else self._folders_hinted)[path] = self._clock()
                if kind:
                    self._fold(kind, path)
                return
            known = "burst" in self._troubles
            self._troubles["burst"] = f"more than {BURST} changes at once; they are counted by looking"
        if not known:
            self._woken.set()

    def _fold(self, kind: ChangeKind, path: str) -> None:
        """Created and then written is created; created and then deleted never was."""
        was = self._pending.get(path)
        if was is ChangeKind.ADDED and kind is ChangeKind.REMOVED:
            del self._pending[path]
        elif was is ChangeKind.REMOVED and kind is ChangeKind.ADDED:
            self._pending[path] = ChangeKind.MODIFIED
        elif not (was is ChangeKind.ADDED and kind is ChangeKind.MODIFIED):
            self._pending[path] = kind

    def _trouble(self, key: str, text: str | None) -> None:
        with self._lock:
            if text is None:
                self._troubles.pop(key, None)
            else:
                self._troubles[key] = text


def _no_watcher(error: Exception, every_seconds: float) -> str:
    limit = _LIMITS.get(error.errno or 0) if isinstance(error, OSError) else None
    remedy = f"; to be told at once, raise fs.inotify.{limit} (sysctl)" if limit else ""
    return f"no watcher ({error}); changes are found by looking every {every_seconds:g} s{remedy}"


def differences(
    before: Mapping[str, Folder], after: Mapping[str, Folder]
) -> Iterator[tuple[ChangeKind, str]]:
    """Files and links that came, went or changed from one look to the next; an untouched folder costs nothing."""
    for path, folder in after.items():
        old = before.get(path)
        if old is folder:
            continue
        was, now = _files(old) if old else {}, _files(folder)
        for name, key in now.items():
            if name not in was:
                yield ChangeKind.ADDED, child(path, name)
            elif was[name] != key:
                yield ChangeKind.MODIFIED, child(path, name)
        for name in was.keys() - now.keys():
            yield ChangeKind.REMOVED, child(path, name)
    for path in before.keys() - after.keys():
        for name in _files(before[path]):
            yield ChangeKind.REMOVED, child(path, name)


def _files(folder: Folder) -> dict[str, tuple[int, ...]]:
    inside = set(folder.folders) | folder.left_out.keys()
    return {name: key for name, key in folder.entries.items() if name not in inside}
