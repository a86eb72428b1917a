"""Writing a snapshot: one `git fast-import`, one pack, one commit, one ref."""

from contextlib import suppress
from subprocess import PIPE, Popen

from sessions.snapshots.objects import EMPTY_TREE, Objects, Unwritten


class Import:
    """One `git fast-import`: blobs first, then one commit; nothing is visible until `finish` returns."""

    def __init__(self, objects: Objects, lock: int) -> None:
        self._objects = objects
        # The lock goes with the process, so that nobody believes the store idle while git outlives us.
        with objects.complaints():
            started = objects.git.execute(
                ["git", "fast-import", "--quiet", "--done", "--depth=0"],
                istream=PIPE,
                as_process=True,
                pass_fds=(lock,),
            )
        assert started.proc is not None
        self._process: Popen[bytes] = started.proc
        started.proc = None  # GitPython would end it with the wrapper; we do
        assert self._process.stdin is not None
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

    def ask_for_tree(self, path: bytes) -> None:
        """Have git say, with `finish`, which tree it made of `path`."""
        self._write(b'ls "%b"\n' % path)

    def end(self) -> None:
        """Everything is said; git writes its pack and index, flushes them to the disk and publishes the commit."""
        self._write(b"done\n")
        try:
            self._pipe.close()
        except OSError:
            raise self._complaint() from None

    def finish(self) -> str:
        """Wait for all that `end` set going, or raise `Unwritten`; the id of the tree asked for."""
        assert self._process.stdout is not None
        answer = self._process.stdout.read()
        if self._process.wait() != 0:
            raise self._complaint()
        self._close_pipes()
        return (
            EMPTY_TREE if answer.startswith(b"missing") else answer.split(b"\t")[0].split(b" ")[-1].decode()
        )

    def abort(self) -> None:
        """Stop, leaving no ref and at most a temporary file for `sweep`."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close_pipes()

    def _write(self, data: bytes) -> None:
        try:
            self._pipe.write(data)
        except OSError:
            raise self._complaint() from None

    def _complaint(self) -> Unwritten:
        with suppress(OSError):
            self._pipe.close()
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        self._process.wait()
        return Unwritten("; ".join(said[:3]) or "git fast-import ended without a word")

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _quoted(path: bytes) -> bytes:
    if b"\n" not in path:
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b'"', b'\\"')
    return b'"' + escaped + b'"'
