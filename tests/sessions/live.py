"""A real session on the tiny environment: own store, real host, real scorer; ended when the test is."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from environments import assets
from environments.contract import Progress
from environments.registry import find, load
from environments.sealing import PUBLIC_PASSPHRASE
from sessions.clients.client import HostGone
from sessions.clients.hosting import connect, start_host, stop_host
from sessions.clients.protocol import Refusal
from sessions.host.opening import Opening, find_hardware, open_session
from sessions.record.events import Event, Isolation, ParticipantKind, SessionPolicy
from sessions.record.log import read_log
from sessions.record.store import Record, Store

TINY = Path(__file__).resolve().parents[1] / "environments" / "tiny"
MINUTE = 60_000


class Live:
    """One session and what a test does to it."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.store = Store(folder / "home")
        self.work = folder / "work"
        found = find("tiny", [TINY.parent])
        environment_folder = found.folder
        prepare(found.folder, self.store.home)
        self.record: Record = open_session(
            Opening(
                **{
                    "environment": found.spec,
                    "profile": "cpu",
                    "policy": SessionPolicy(budget_ms=30 * MINUTE),
                    "participant": "jo",
                    "participant_kind": ParticipantKind.HUMAN,
                    "work_tree": self.work,
                    "isolation": Isolation.NONE,
                    "hardware": find_hardware("cpu-2"),
                    "brief": (found.folder / "brief.md").read_text(),
                    "starter": {"solution.py": found.folder / "starter" / "solution.py"},
                    "assets": assets.folders_for(found.spec, "cpu", self.store.home),
                    "environment_folder": environment_folder,
                    **changes,
                }
            ),
            self.store,
        )
        start_host(self.record)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        with connect(self.record, timeout=60) as client:
            return client.request(method, **parameters)

    def begin(self) -> None:
        """Wait for the starting score, agree, start the clock."""
        until(lambda: self.ask("status")["phase"] == "ready")
        self.ask("consent", rules_sha256="0" * 64)
        self.ask("start_clock")

    def host_pid(self) -> int:
        return int(self.ask("hello")["pid"])

    def kill_host(self) -> None:
        pid = self.host_pid()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))

    def events(self) -> tuple[Event, ...]:
        return read_log(self.record.log).events

    def solve(self, expression: str) -> None:
        """Write a solution that predicts `expression` of x."""
        (self.work / "solution.py").write_text(f"def predict(xs):\n    return [{expression} for x in xs]\n")

    def close(self) -> None:
        """Leave no process behind, recorders that outlive their host included."""
        stop_host(self.record)
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.record.folder) in word for word in process.info["cmdline"] or ()):
                with suppress(psutil.Error):
                    process.kill()


def prepare(environment: Path, home: Path) -> None:
    """Prepare the tiny environment in `home`."""
    found = find(environment.name, [environment.parent])

    def quiet(_: Progress) -> None:
        pass

    assets.prepare(load(found), found.spec, "cpu", PUBLIC_PASSPHRASE, home, quiet)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition; a host that is just coming back is waited for too."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (HostGone, Refusal):
            pass
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds} s: {condition}")
        time.sleep(0.02)


@contextmanager
def live(folder: Path, **changes: Any) -> Iterator[Live]:
    # Sockets have short paths; the folders of parallel tests do not.
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="rw-") as run:
        Path(run).chmod(0o711)
        patch.setenv("REBENCH_RUNTIME", run)
        session = Live(folder, **changes)
        try:
            yield session
        finally:
            session.close()


__all__ = ["MINUTE", "Live", "alive", "live", "until"]
