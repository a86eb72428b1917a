"""Which folders and files a policy leaves out."""

import fnmatch
import os
import re
import stat
from collections.abc import Collection, Mapping

from sessions.snapshots.folders import MODE, Key
from sessions.snapshots.names import child


class Rules:
    """A policy's exclude patterns, sorted by how they are matched."""

    def __init__(self, patterns: Collection[str]) -> None:
        self.markers = {p.removeprefix("holds:"): p for p in patterns if p.startswith("holds:")}
        plain = [p for p in patterns if not p.startswith("holds:")]
        self._folders = {
            p[:-1]: p for p in plain if p.endswith("/") and not _is_glob(p) and "/" not in p[:-1]
        }
        globs = [p for p in plain if p[:-1] not in self._folders or not p.endswith("/")]
        self._by_name = [
            (re.compile(fnmatch.translate(p.rstrip("/"))), p) for p in globs if "/" not in p[:-1]
        ]
        self._by_path = [(re.compile(fnmatch.translate(p.strip("/"))), p) for p in globs if "/" in p[:-1]]

    def left_out(self, folder: str, entries: Mapping[str, Key]) -> dict[str, str]:
        """Names in `folder` that are excluded, each with its pattern."""
        found = {
            name: self._folders[name]
            for name in self._folders.keys() & entries.keys()
            if stat.S_ISDIR(entries[name][MODE])
        }
        if self._by_name or self._by_path:
            for name, key in entries.items():
                pattern = self._match(folder, name, stat.S_ISDIR(key[MODE]))
                if pattern:
                    found[name] = pattern
        return found

    def _match(self, folder: str, name: str, is_folder: bool) -> str | None:
        for regex, pattern in self._by_name:
            if (is_folder or not pattern.endswith("/")) and regex.match(name):
                return pattern
        path = child(folder, name) if self._by_path else ""
        for regex, pattern in self._by_path:
            if (is_folder or not pattern.endswith("/")) and regex.match(path):
                return pattern
        return None

    def names_folder(self, path: str) -> bool:
        """Whether some folder above `path` is left out by its name alone."""
        return not self._folders.keys().isdisjoint(path.split("/")[:-1])

    def marked(self, folder_fd: int, entries: Mapping[str, Key]) -> str | None:
        """The pattern that excludes a folder for what it holds."""
        for name, pattern in self.markers.items():
            if name in entries and (name != "CACHEDIR.TAG" or _is_cache_tag(folder_fd)):
                return pattern
        return None


def _is_glob(pattern: str) -> bool:
    return any(c in pattern for c in "*?[")


def _is_cache_tag(folder_fd: int) -> bool:
    """By the Cache Directory Tagging Specification the name alone says nothing."""
    try:
        fd = os.open(
            "CACHEDIR.TAG", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder_fd
        )
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and os.read(fd, 43) == (
            b"Signature: 8a477f597d28d172789f06886806bc55"
        )
    except OSError:
        return False
    finally:
        os.close(fd)
