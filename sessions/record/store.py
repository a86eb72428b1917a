"""Where records live: naming, finding and opening them. Quick to import; reads logs only at their ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from environments.machine.home import home_folder

SESSION_VARIABLE = "REBENCH_SESSION"
RUNTIME_VARIABLE = "REBENCH_RUNTIME"
LONGEST_SOCKET = 107
"""Bytes of a Unix socket's path."""


class SessionNotFound(LookupError):
    """No session matches, or several do; the message lists what exists."""


def runtime_folder() -> Path:
    """Return where sockets live: short paths, ours alone, gone after a boot."""
    if chosen := os.environ.get(RUNTIME_VARIABLE):
        return Path(chosen)
    if shared := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(shared) / "rebench-workbench"
    return Path(os.environ.get("TMPDIR", "/tmp")) / f"rebench-workbench-{os.getuid()}"  # noqa: S108  (made 0700, owner checked)


def make_runtime_folders(record: Record) -> None:
    """Make the folders of a session's sockets; only the participant's may be entered by another account.

    Raises:
        PermissionError: somebody else owns the runtime folder.
        OSError: its path is too long for a socket.
    """
    top = runtime_folder()
    longest = max(map(len, map(os.fsencode, (record.participant_socket, record.proctor_socket))))
    if longest > LONGEST_SOCKET:
        raise OSError(
            f"{top} is too long a path for sockets ({longest} bytes where {LONGEST_SOCKET} fit); "
            f"set {RUNTIME_VARIABLE} to a shorter folder"
        )
    top.mkdir(parents=True, exist_ok=True, mode=0o711)
    if top.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{top} belongs to another user; set {RUNTIME_VARIABLE} to a folder of your own"
        )
    for folder, mode in (
        (top / record.session, 0o711),
        (record.participant_socket.parent, 0o711),
        (record.shell_socket(0).parent, 0o711),
        (record.gateway_socket.parent, 0o711),
        (record.proctor_socket.parent, 0o700),
    ):
        folder.mkdir(exist_ok=True, mode=mode)


class Record(NamedTuple):
    """One session's folder and its well-known places."""

    folder: Path

    @property
    def session(self) -> str:
        return self.folder.name

    @property
    def home(self) -> Path:
        return self.folder.parent.parent

    @property
    def log(self) -> Path:
        return self.folder / "events.jsonl"

    @property
    def review_log(self) -> Path:
        return self.folder / "review.jsonl"

    @property
    def brief(self) -> Path:
        return self.folder / "brief.md"

    @property
    def wiring(self) -> Path:
        return self.folder / "wiring.json"

    @property
    def recordings(self) -> Path:
        return self.folder / "recordings"

    @property
    def telemetry(self) -> Path:
        return self.folder / "telemetry"

    @property
    def host_lock(self) -> Path:
        return self.folder / "host.lock"

    @property
    def host_log(self) -> Path:
        return self.folder / "host.log"

    def score_folder(self, number: int) -> Path:
        return self.folder / "scores" / str(number)

    @property
    def participant_socket(self) -> Path:
        return runtime_folder() / self.session / "participant" / "participant.sock"

    def shell_socket(self, number: int) -> Path:
        return runtime_folder() / self.session / "shells" / f"{number}.sock"

    @property
    def gateway_socket(self) -> Path:
        return runtime_folder() / self.session / "gateway" / "gateway.sock"

    @property
    def proctor_socket(self) -> Path:
        return runtime_folder() / self.session / "proctor" / "proctor.sock"

    def header(self) -> dict[str, Any]:
        """Return the body of `session_opened`."""
        with self.log.open("rb") as log:
            body: dict[str, Any] = json.loads(log.readline())["body"]
        return body

    def closed(self) -> bool:
        """Whether the last whole line of the log is `session_closed`."""
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 65_536))
            lines = log.read().split(b"\n")[:-1]
        return bool(lines) and b'"kind":"session_closed"' in lines[-1]


class Store:
    """All records of one home."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or home_folder()
        self.folder = self.home / "sessions"

    def records(self) -> Iterator[Record]:
        """Yield every record, oldest first."""
        if not self.folder.is_dir():
            return
        found = [Record(path) for path in self.folder.iterdir() if (path / "events.jsonl").is_file()]
        yield from sorted(found, key=lambda record: record.log.stat().st_ctime_ns)

    def create(self) -> Record:
        """Make the folder of a new session, readable by its owner alone."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            record = Record(self.folder / f"s-{os.urandom(3).hex()}")
            try:
                record.folder.mkdir(mode=0o700)
                return record
            except FileExistsError:
                continue

    def find(self, name: str | None = None, *, standing_in: Path | None = None) -> Record:
        """Return the session meant: `name`, `$REBENCH_SESSION`, the work folder one stands in, or the only live one.

        Raises:
            SessionNotFound: none or several match.
        """
        records = list(self.records())
        if wanted := name or os.environ.get(SESSION_VARIABLE):
            return self._named(wanted, records)
        here = (standing_in or Path.cwd()).resolve()
        inside = [r for r in records if here.is_relative_to(r.header()["work_tree"])]
        live = [r for r in inside or records if not r.closed()]
        if len(live) == 1:
            return live[0]
        if not live and inside:
            return inside[-1]
        if not live:
            raise SessionNotFound(
                f"no live session in {self.folder}. `rebench-workbench start restricted_mlm` opens one; "
                "`rebench-workbench sessions` lists those that ended"
            )
        raise SessionNotFound(
            "several sessions are live: " + ", ".join(r.session for r in live) + ". Say which with --session"
        )

    def sharing(self, folder: Path) -> Record | None:
        """Return an open session whose work folder lies in `folder` or holds it: it would take in what is done there."""
        place = folder.resolve()
        for record in self.records():
            with suppress(OSError, ValueError, KeyError):  # a damaged record is no reason
                work = Path(record.header()["work_tree"]).resolve()
                if (place.is_relative_to(work) or work.is_relative_to(place)) and not record.closed():
                    return record
        return None

    def _named(self, wanted: str, records: list[Record]) -> Record:
        matches = [r for r in records if r.session == wanted] or [
            r for r in records if r.session.startswith(wanted) or r.session.startswith(f"s-{wanted}")
        ]
        if len(matches) == 1:
            return matches[0]
        known = ", ".join(r.session for r in records) or "none"
        raise SessionNotFound(
            f"{'several sessions match' if matches else 'no session is called'} {wanted!r}; known: {known}"
        )
