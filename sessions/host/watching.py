"""Hints from inotify through watchdog: quick, and never to be relied upon."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from sessions.snapshots.values import ChangeKind

# Not every write and not a single read: a training that logs or loads data would keep us as busy as itself.
# A file's change is told when the file is closed; one that stays open is found by looking.
_HEARD: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileClosedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
]


class KernelHints(FileSystemEventHandler):
    """One watchdog observer over one tree."""

    def __init__(self) -> None:
        self._observer: BaseObserver | None = None
        self._root = b""
        self._tell: Callable[[ChangeKind | None, str], None] | None = None
        self._others = 0

    def start(self, root: Path, tell: Callable[[ChangeKind | None, str], None]) -> None:
        self._root, self._tell = os.fsencode(root), tell
        self._others = _watches() or 0
        observer = Observer()
        observer.schedule(self, os.fspath(root), recursive=True, event_filter=_HEARD)
        observer.start()
        self._observer = observer

    def stop(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(timeout=5)

    def watched(self) -> int | None:
        found = _watches()
        return None if found is None else found - self._others

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.is_directory:
            self._say(None, event.src_path)
            self._say(None, event.dest_path)
            return
        match event.event_type:
            case "created":
                self._say(ChangeKind.ADDED, event.src_path)
            case "closed" | "modified":
                self._say(ChangeKind.MODIFIED, event.src_path)
            case "deleted":
                self._say(ChangeKind.REMOVED, event.src_path)
            case "moved":
                self._say(ChangeKind.REMOVED, event.src_path)
                self._say(ChangeKind.ADDED, event.dest_path)
            case _:
                pass

    def _say(self, kind: ChangeKind | None, path: bytes | str) -> None:
        inside = below(self._root, path)
        if inside is not None and self._tell is not None:
            self._tell(kind, inside)


def _watches() -> int | None:
    """inotify watches of this process, as the kernel counts them; None where it does not tell."""
    total = 0
    try:
        fds = list(Path("/proc/self/fd").iterdir())
    except OSError:
        return None
    for fd in fds:
        with suppress(OSError):
            if os.fspath(fd.readlink()) == "anon_inode:inotify":
                total += Path("/proc/self/fdinfo", fd.name).read_text("ascii").count("inotify wd:")
    return total


def below(root: bytes, path: bytes | str) -> str | None:
    """`path` as `os` spells it, from `root` on; None for the root itself and for what lies elsewhere."""
    raw = os.fsencode(path)
    if not raw.startswith(root + b"/"):
        return None
    return os.fsdecode(raw[len(root) + 1 :])
