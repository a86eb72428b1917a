"""Who may read what: starts the participant's commands apart from what they must not see, and proves it by trying."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from environments.machine.bubblewrap import (
    PROGRAM,
    bubblewrap,
    covered,
    gpu_devices,
    own_processes,
    read_only,
    read_only_if_there,
    try_bubblewrap,
    writable,
)
from sessions.record.events import Isolation, IsolationFound

_PROBE = Path(__file__).with_name("isolation_probe.py")
_PROBE_SECONDS = 30.0
_CANARY = ".isolation-canary-"
_NEEDED_OF_RUN = (
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
    "/run/nscd",
    "/run/nvidia-persistenced",
)
"""The rest of /run would let a command leave: the user's service manager and container daemons listen there."""
_SECRET_VARIABLES = (
    "REBENCH_WORKBENCH_KEY",
    "REBENCH_GATEWAY_",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
)
_KEYS_OF_HOME = (".ssh", ".gnupg", ".docker", ".aws", ".kube", ".config/gcloud")
"""Logins a command could use to come back as the same user, outside."""


@dataclass(frozen=True)
class Surroundings:
    """What the participant's commands are started in."""

    work_folder: Path
    masks: tuple[Path, ...] = ()
    """Hidden in a sandbox: the whole store, protected assets, the proctor's socket, corpora packages."""
    visible: tuple[Path, ...] = ()
    """Shown read-only although inside a mask: public assets, the participant's socket."""
    private: Path | None = None
    """A folder of this session that serves as /tmp and for caches, shared by all its shells; None: an empty /tmp each."""
    account: str | None = None
    """The participant's account, for `user`."""
    network: bool = True
    terminal: bool = True
    """Whether the command owns a terminal of ours (keeps job control); a piped command loses its controlling terminal."""


@dataclass(frozen=True)
class Guarded:
    """Something a participant must not be able to read, write into or reach."""

    name: str
    """`the log`, `protected assets`, ..."""
    path: Path
    """A file, a folder or a socket."""
    decisive: bool = True
    """Whether the level does not hold when this is reached; otherwise reaching it is only written down."""


@dataclass(frozen=True)
class Attempt:
    """What the probe managed, of one thing it tried."""

    name: str
    got_through: bool
    said: str
    decisive: bool = True

    def line(self) -> str:
        return f"{self.name}: {'REACHED' if self.got_through else 'out of reach'} ({self.said})"


@dataclass(frozen=True)
class Candidate:
    """One level as it turned out when tried."""

    level: Isolation
    attempts: tuple[Attempt, ...] = field(default=())
    failure: str | None = None
    """Why the probe could not even be started."""

    @property
    def holds(self) -> bool:
        return (
            self.failure is None
            and bool(self.attempts)
            and not any(a.got_through and a.decisive for a in self.attempts)
        )

    def evidence(self) -> tuple[str, ...]:
        if self.failure is not None:
            return (f"{self.level.value}: cannot be used: {self.failure}",)
        return tuple(f"{self.level.value}: {attempt.line()}" for attempt in self.attempts)


def detect(
    guarded: Sequence[Guarded],
    surroundings: Surroundings,
    *,
    wanted: Isolation | None = None,
    host_pid: int | None = None,
) -> IsolationFound:
    """Return the level truly in force, with evidence.

    Each candidate level (or only `wanted`) is tried: a probe is started exactly as the participant's shells will be, and
    attempts to read every guarded thing, to connect to sockets, and to read the memory and environment of `host_pid`
    (default: this process). A level is in force when nothing was reached; otherwise the answer is `none`.
    """
    evidence: list[str] = []
    for level in (wanted,) if wanted is not None else (Isolation.USER, Isolation.SANDBOX):
        if level is Isolation.NONE:
            break
        candidate = try_level(level, guarded, surroundings, host_pid or os.getpid())
        if candidate.holds:
            return IsolationFound(level=level, evidence=candidate.evidence())
        evidence += candidate.evidence()
    return IsolationFound(level=Isolation.NONE, evidence=(*evidence, "none: unprotected"))


def try_level(
    level: Isolation, guarded: Sequence[Guarded], surroundings: Surroundings, host_pid: int
) -> Candidate:
    """Start the probe at `level` and return what it reached."""
    if (reason := unavailable(level, surroundings)) is not None:
        return Candidate(level, failure=reason)
    with _canaries(guarded) as planted:
        targets = [{"name": g.name, "path": str(planted.get(g, g.path))} for g in guarded if g.path.exists()]
        question = json.dumps({"targets": targets, "host": host_pid})
        command = command_in(level, [_interpreter(), "-I", "-S", "-", question], surroundings)
        variables = participant_variables(level, os.environ, surroundings)
        try:
            done = subprocess.run(
                command,
                check=False,
                input=_PROBE.read_bytes(),
                capture_output=True,
                timeout=_PROBE_SECONDS,
                env=variables,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Candidate(level, failure=f"the probe could not be run: {error}")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        return Candidate(level, failure=f"the probe did not answer (exit code {done.returncode}): {said}")
    minor = {g.name for g in guarded if not g.decisive}
    attempts = (Attempt(a["name"], a["reached"], a["said"], a["name"] not in minor) for a in found)
    return Candidate(level, tuple(attempts))


def unavailable(level: Isolation, surroundings: Surroundings) -> str | None:
    """Return why `level` cannot be used at all, or None."""
    if level is Isolation.USER:
        if surroundings.account is None:
            return "no participant account was named"
        with contextlib.suppress(KeyError):
            pwd.getpwnam(surroundings.account)
            if os.geteuid() == 0:
                return None if shutil.which("setpriv") else "setpriv (util-linux) is not installed"
            return "only root can start commands as another account"
        return f"there is no account {surroundings.account!r}"
    if level is Isolation.SANDBOX:
        return (
            None
            if sandbox_works()
            else f"bubblewrap makes no sandbox here: {try_bubblewrap(own_network=False).problem}"
        )
    return None


def sandbox_works() -> bool:
    """Whether bubblewrap can make a participant's sandbox here, found by trying once."""
    return bubblewrap(own_network=False) is not None


def participant_command(
    level: Isolation,
    command: Sequence[str],
    work_folder: Path,
    masks: Sequence[Path | str] = (),
    *,
    user: str | None = None,
    visible: Sequence[Path | str] = (),
    private: Path | None = None,
    network: bool = True,
    terminal: bool = True,
) -> list[str]:
    """Return the command line that starts `command` at `level`; the rest is what `Surroundings` holds."""
    surroundings = Surroundings(
        work_folder=work_folder,
        masks=tuple(map(Path, masks)),
        visible=tuple(map(Path, visible)),
        private=private,
        account=user,
        network=network,
        terminal=terminal,
    )
    return command_in(level, command, surroundings)


def command_in(level: Isolation, command: Sequence[str], surroundings: Surroundings) -> list[str]:
    """Return the command line that starts `command` for the participant at `level`.

    The current folder is the caller's to set for `user` and `none`; a sandbox starts in the work folder.
    """
    match level:
        case Isolation.NONE:
            return list(command)
        case Isolation.USER:
            assert surroundings.account is not None
            account = pwd.getpwnam(surroundings.account)
            return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups",
                    "--inh-caps=-all", "--bounding-set=-all", "--", *command]  # fmt: skip
        case Isolation.SANDBOX:
            return [*_sandbox(surroundings), "--", *command]


def participant_variables(
    level: Isolation, variables: Mapping[str, str], surroundings: Surroundings
) -> dict[str, str]:
    """Return the environment variables for the participant's commands: ours without keys, with their own home."""
    kept = {k: v for k, v in variables.items() if not k.startswith(_SECRET_VARIABLES)}
    if level is Isolation.USER and surroundings.account is not None:
        account = pwd.getpwnam(surroundings.account)
        kept |= {
            "HOME": account.pw_dir,
            "USER": account.pw_name,
            "LOGNAME": account.pw_name,
            "SHELL": account.pw_shell,
        }
        kept.pop("XDG_RUNTIME_DIR", None)
    if level is Isolation.SANDBOX and surroundings.private is not None:
        caches = surroundings.private / "cache"
        kept |= {"XDG_CACHE_HOME": str(caches), "XDG_STATE_HOME": str(caches), "TMPDIR": "/tmp"}  # noqa: S108
        kept |= {"HISTFILE": str(caches / "shell_history"), "PYTHON_HISTORY": str(caches / "python_history")}
    return kept


def _sandbox(surroundings: Surroundings) -> list[str]:
    """The whole file system read-only, own processes, /dev and /tmp; masks over it, then what shows in spite of them."""
    work = str(surroundings.work_folder.resolve())
    command = [
        PROGRAM,
        *own_processes(),
        "--die-with-parent",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    command += [] if surroundings.network else ["--unshare-net"]
    command += [] if surroundings.terminal else ["--new-session"]
    command += [*read_only("/"), "--dev", "/dev", "--proc", "/proc", *gpu_devices()]
    command += [*_own_temporary(surroundings), "--tmpfs", "/run"]
    for path in _NEEDED_OF_RUN:
        command += read_only_if_there(path)
    return [*command, *_places(surroundings), "--chdir", work]


def _places(surroundings: Surroundings) -> list[str]:
    """Cover, show and open paths, parents before what lies in them: a mask may lie in something visible and the reverse."""
    home = Path.home()
    masks = [
        m.resolve() for m in (*surroundings.masks, *(home / name for name in _KEYS_OF_HOME)) if m.exists()
    ]
    placed = [(m, covered(m, folder=m.is_dir())) for m in masks]
    placed += [
        (real, read_only_if_there(real)) for real in (shown.resolve() for shown in surroundings.visible)
    ]
    open_to_them = [surroundings.work_folder.resolve()]
    if surroundings.private is not None:
        open_to_them.append(surroundings.private.resolve() / "cache")
    placed += [(path, writable(path)) for path in open_to_them]
    command = [word for _, words in sorted(placed, key=lambda place: len(place[0].parts)) for word in words]
    for mask in masks:
        command += ["--remount-ro", str(mask)] if mask.is_dir() else []
    return command


def _own_temporary(surroundings: Surroundings) -> list[str]:
    if surroundings.private is None:
        return ["--tmpfs", "/tmp"]  # noqa: S108  (inside the sandbox)
    for name in ("tmp", "cache"):
        (surroundings.private / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    return writable(surroundings.private.resolve() / "tmp", "/tmp")  # noqa: S108


def _interpreter() -> str:
    return os.path.realpath(sys.executable)


@contextlib.contextmanager
def _canaries(guarded: Sequence[Guarded]) -> Iterator[dict[Guarded, Path]]:
    """Put a file into every guarded folder, so that an empty folder proves as much as a full one."""
    planted: dict[Guarded, Path] = {}
    try:
        for item in guarded:
            if item.path.is_dir():
                canary = item.path / f"{_CANARY}{secrets.token_hex(8)}"
                with contextlib.suppress(OSError):
                    canary.write_text("an isolation probe was here; this file may be deleted\n")
                    canary.chmod(0o644)
                    planted[item] = canary
        yield planted
    finally:
        for canary in planted.values():
            canary.unlink(missing_ok=True)
