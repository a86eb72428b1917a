"""The bare repository: written by one `git fast-import` a snapshot, read by one lasting `git cat-file`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from sessions.snapshots.names import from_tree
from sessions.snapshots.values import SnapshotError

if TYPE_CHECKING:
    from git import Git

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_CONFIGURATION = {
    "core.compression": "1",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "false",
    "core.fsync": "committed,loose-object,reference",
    "fastimport.unpackLimit": "0",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "diff.external": "",
}


def quiet_environment(git_dir: Path) -> dict[str, str]:
    """Variables under which git reads no configuration but ours and touches no repository but `git_dir`.

    GitPython can add variables and not take any away, so every GIT_* one that we inherited is emptied."""
    ours = {
        "GIT_DIR": os.fspath(git_dir),
        "GIT_WORK_TREE": os.fspath(git_dir),
        "GIT_COMMON_DIR": os.fspath(git_dir),
        "GIT_OBJECT_DIRECTORY": os.fspath(git_dir / "objects"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": str(len(_CONFIGURATION)),
    }
    for i, (key, value) in enumerate(_CONFIGURATION.items()):
        ours[f"GIT_CONFIG_KEY_{i}"] = key
        ours[f"GIT_CONFIG_VALUE_{i}"] = value
    return {name: "" for name in os.environ if name.startswith("GIT_")} | ours


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class TreeEntry(NamedTuple):
    mode: str
    name: str
    """The participant's own spelling."""
    oid: str


class Unwritten(Exception):
    """git did not do what it was asked; the text is its own complaint."""


class Broken(Exception):
    """An object is missing or is not what its name says."""


class Objects:
    """One bare repository. Reading is serialised; writing is the caller's business to serialise."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir.absolute()
        self._lock = RLock()
        self._git: Git | None = None

    @property
    def git(self) -> Git:
        if self._git is None:
            from git import Git  # 40 ms that a reader of plain values need not spend

            self._git = Git(os.fspath(self.git_dir))
            self._git.update_environment(**quiet_environment(self.git_dir))
        return self._git

    @contextmanager
    def complaints(self) -> Iterator[None]:
        """GitPython's errors as one of ours."""
        from git.exc import CommandError

        try:
            yield
        except CommandError as error:
            raise Unwritten(str(error.stderr or error).strip()) from error

    def repack(self) -> None:
        with self.complaints():
            self.git.repack("-a", "-d", "-f", "-q")

    def create(self) -> None:
        self.git_dir.mkdir(mode=0o700)
        with self.complaints():
            self._initialise()

    def _initialise(self) -> None:
        # Not `--bare`, which refuses to work where GIT_WORK_TREE is set at all.
        self.git.init("--quiet", "--template=", "--initial-branch=none", "--object-format=sha1")
        self.git.config("--local", "--unset", "core.worktree")
        self.git.config("--local", "core.bare", "true")
        (self.git_dir / "objects" / "pack").mkdir(exist_ok=True)

    def close(self) -> None:
        with self._lock:
            if self._git is not None:
                self._git.clear_cache()

    # -- refs ---------------------------------------------------------------------------------------------

    def numbers(self) -> dict[int, str]:
        """Every snapshot's number and commit, ascending; read from the files, where git would take a process."""
        found = {}
        with suppress(FileNotFoundError), os.scandir(self.git_dir / "refs" / "snapshots") as loose:
            for entry in loose:
                with suppress(FileNotFoundError):
                    if entry.name.isdigit():
                        found[int(entry.name)] = Path(entry.path).read_text("ascii").strip()
        # We never pack refs, yet somebody's `git gc` may have; a loose one counts for more.
        with suppress(FileNotFoundError):
            for line in (self.git_dir / "packed-refs").read_text("ascii").splitlines():
                oid, _, ref = line.partition(" ")
                number = ref.removeprefix("refs/snapshots/")
                if ref != number and number.isdigit():
                    found.setdefault(int(number), oid)
        return dict(sorted(found.items()))

    def commit_of(self, number: int) -> str:
        return (self.git_dir / "refs" / "snapshots" / str(number)).read_text("ascii").strip()

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, oid: str, kind: str) -> bytes:
        """The bytes of object `oid`, which must be a `kind`."""
        with self._lock:
            try:
                found, data = self._look_up(oid)
            except (ValueError, OSError, Unwritten) as error:
                self.git.clear_cache()
                raise Broken(f"the {kind} {oid} cannot be read: {str(error).strip()}") from error
        if found != kind:
            raise Broken(f"the object {oid} is a {found} where a {kind} is due")
        return data

    def _look_up(self, oid: str) -> tuple[str, bytes]:
        with self.complaints():
            _, kind, _, data = self.git.get_object_data(oid)
        name: str | bytes = kind  # bytes, whatever GitPython's annotation says
        return (name.decode() if isinstance(name, bytes) else name), data

    def size(self, oid: str) -> int | None:
        with self._lock:
            try:
                with self.complaints():
                    return int(self.git.get_object_header(oid)[2])
            except (ValueError, OSError, Unwritten):
                self.git.clear_cache()
                return None

    def checked(self, oid: str, kind: str) -> bytes:
        """`read`, and the bytes hashed again."""
        data = self.read(oid, kind)
        header = f"{kind} {len(data)}\0".encode()
        if hashlib.sha1(header + data, usedforsecurity=False).hexdigest() != oid:
            raise Broken(f"the {kind} {oid} does not hash to its own name")
        return data

    def tree(self, oid: str) -> list[TreeEntry]:
        return list(parse_tree(self.read(oid, "tree")))

    def patch(self, old: str, new: str) -> str:
        """Unified text from one blob to another, without the header that names them."""
        command = ["git", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", old, new]
        try:
            with self.complaints():
                text = self.git.execute(command, stdout_as_string=False, strip_newline_in_stdout=False)
        except Unwritten as error:
            raise Broken(f"the blobs {old} and {new} cannot be compared: {error}") from error
        lines = bytes(text).decode("utf-8", "backslashreplace")
        start = lines.find("\n@@ ")
        return lines[start + 1 :] if start >= 0 else ""


def parse_tree(data: bytes) -> Iterator[TreeEntry]:
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        yield TreeEntry(
            data[at:space].decode(),
            os.fsdecode(from_tree(data[space + 1 : end])),
            data[end + 1 : end + 21].hex(),
        )
        at = end + 21


def parse_commit(data: bytes) -> tuple[str, list[str]]:
    """A commit's tree and parents."""
    header = data.split(b"\n\n", 1)[0].decode("utf-8", "replace")
    tree = re.search(r"^tree ([0-9a-f]{40})$", header, re.MULTILINE)
    if not tree:
        raise Broken("a commit names no tree")
    return tree[1], re.findall(r"^parent ([0-9a-f]{40})$", header, re.MULTILINE)


def resolve(objects: Objects, which: int | str) -> str:
    """The commit of a snapshot given by number, or by its own full id."""
    numbers = objects.numbers()
    if isinstance(which, int):
        if which not in numbers:
            have = ", ".join(map(str, numbers)) or "none"
            raise SnapshotError(
                f"there is no snapshot {which} in {objects.git_dir.parent}; there are: {have}"
            )
        return numbers[which]
    if which not in numbers.values():
        raise SnapshotError(f"no snapshot in {objects.git_dir.parent} has the commit {which!r}")
    return which
