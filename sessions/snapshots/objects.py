"""The bare repository: written by one `git fast-import` a snapshot, read by one lasting `git cat-file`."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from threading import RLock
from typing import NamedTuple

import git
from git.exc import GitCommandError

from sessions.snapshots.names import from_tree
from sessions.snapshots.values import SnapshotError

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_CONFIGURATION = {
    "core.compression": "1",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "false",
    "core.fsync": "committed,loose-object",
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
    """git did not finish writing; the text is its own complaint."""


class Broken(Exception):
    """An object is missing or is not what its name says."""


class Objects:
    """One bare repository. Reading is serialised; writing is the caller's business to serialise."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir.absolute()
        self._lock = RLock()
        self._git: git.Git | None = None

    @property
    def git(self) -> git.Git:
        if self._git is None:
            self._git = git.Git(os.fspath(self.git_dir))
            self._git.update_environment(**quiet_environment(self.git_dir))
        return self._git

    def create(self) -> None:
        self.git_dir.mkdir(mode=0o700)
        self.git.init("--quiet", "--bare", "--template=", "--initial-branch=none", "--object-format=sha1")
        (self.git_dir / "objects" / "pack").mkdir(exist_ok=True)

    def close(self) -> None:
        with self._lock:
            if self._git is not None:
                self._git.clear_cache()

    # -- refs ---------------------------------------------------------------------------------------------

    def numbers(self) -> dict[int, str]:
        """Every snapshot's number and commit, ascending."""
        listed = self.git.for_each_ref("--format=%(refname:lstrip=2) %(objectname)", "refs/snapshots")
        pairs = (line.split() for line in listed.splitlines())
        return dict(sorted((int(n), oid) for n, oid in pairs if n.isdigit()))

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, oid: str, kind: str) -> bytes:
        """The bytes of object `oid`, which must be a `kind`."""
        with self._lock:
            try:
                _, found, _, data = self.git.get_object_data(oid)
            except (ValueError, OSError, GitCommandError) as error:
                self.git.clear_cache()
                raise Broken(f"the {kind} {oid} cannot be read: {str(error).strip()}") from error
        found = found.decode() if isinstance(found, bytes) else found
        if found != kind:
            raise Broken(f"the object {oid} is a {found} where a {kind} is due")
        return bytes(data)

    def size(self, oid: str) -> int | None:
        with self._lock:
            try:
                return int(self.git.get_object_header(oid)[2])
            except (ValueError, OSError, GitCommandError):
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
        text = self.git.execute(
            ["git", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", old, new],
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
        lines = bytes(text).decode("utf-8", "backslashreplace")
        start = lines.find("\n@@ ")
        return lines[start + 1 :] if start >= 0 else ""

    def empty_blob(self) -> str:
        """Write-free: git knows this one by heart."""
        return "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


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


class Import:
    """One `git fast-import`: blobs first, then one commit; nothing is visible until `finish` returns."""

    def __init__(self, objects: Objects, lock: int) -> None:
        self._objects = objects
        # The lock goes with the process, so that nobody believes the store idle while git outlives us.
        self._process = objects.git.execute(
            ["git", "fast-import", "--quiet", "--done", "--depth=0"],
            istream=PIPE,
            as_process=True,
            pass_fds=(lock,),
        )
        self._pipe = self._process.stdin

    def blob(self, data: bytes) -> None:
        self._write(b"blob\ndata %d\n%b\n" % (len(data), data))

    def commit(self, ref: str, message: str, at: int, parent: str | None, *, anew: bool) -> None:
        """Begin the commit; with `anew` its tree starts empty, else it starts as the parent's."""
        text = message.encode("utf-8", "backslashreplace")
        self._write(
            b"commit %b\ncommitter rebench-workbench <snapshots@rebench-workbench.invalid> %d +0000\ndata %d\n%b\n"
            % (ref.encode(), at, len(text), text)
        )
        if parent is not None:
            self._write(b"from %b\n" % parent.encode())
        if anew:
            self._write(b"deleteall\n")

    def delete(self, path: bytes) -> None:
        self._write(b"D %b\n" % _quoted(path))

    def place(self, mode: bytes, oid: str, path: bytes) -> None:
        self._write(b"M %b %b %b\n" % (mode, oid.encode(), _quoted(path)))

    def place_text(self, data: bytes, path: bytes) -> None:
        self._write(b"M 100644 inline %b\ndata %d\n%b\n" % (_quoted(path), len(data), data))

    def finish(self) -> None:
        """Pack and index written, flushed to the disk and published, in this order; or `Unwritten`."""
        self._write(b"done\n")
        try:
            self._pipe.close()
        except OSError:
            raise self._complaint() from None
        if self._process.proc.wait() != 0:
            raise self._complaint()
        self._close_pipes()

    def abort(self) -> None:
        """Stop, leaving no ref and at most a temporary file for `sweep`."""
        process = self._process.proc
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        self._close_pipes()

    def _write(self, data: bytes) -> None:
        try:
            self._pipe.write(data)
        except OSError:
            raise self._complaint() from None

    def _complaint(self) -> Unwritten:
        process = self._process.proc
        try:
            self._pipe.close()
        except OSError:
            pass
        said = process.stderr.read().decode("utf-8", "replace").strip().splitlines() if process else []
        if process is not None:
            process.wait()
        return Unwritten("; ".join(said[:3]) or "git fast-import ended without a word")

    def _close_pipes(self) -> None:
        process = self._process.proc
        if process is not None:
            for pipe in (process.stdin, process.stdout, process.stderr):
                try:
                    pipe.close()
                except OSError:
                    pass


def _quoted(path: bytes) -> bytes:
    if b"\n" not in path:
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b'"', b'\\"')
    return b'"' + escaped + b'"'


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
