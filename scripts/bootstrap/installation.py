"""The virtual environment of a checkout: made once, known by its marker, mended when broken."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.bootstrap import machine
from scripts.bootstrap.pip import Pip, PipFailed, child_environment, explain
from scripts.bootstrap.talk import Stopped, Talk
from scripts.bootstrap.torch_build import CPU_DISK, CUDA_DISK, ask_on_terminal, install_torch

MARKER = "rebench-installed.json"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the virtual environment of a checkout is and what the last set-up put into it."""

    root: Path
    venv: Path

    @classmethod
    def of(cls, root: Path) -> "Installation":
        chosen = os.environ.get("REBENCH_VENV")
        return cls(root, Path(chosen).expanduser().resolve() if chosen else root / ".venv")

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.venv / "bin" / "rebench-workbench"

    @property
    def log(self) -> Path:
        return self.root / ".rebench" / "setup.log"

    def wanted(self) -> str:
        """A digest of all that an installation depends on; another digest means install again."""
        digest = hashlib.sha256((self.root / "pyproject.toml").read_bytes())
        digest.update(str(self.root).encode())
        digest.update(self._run("-c", "import sys; print(sys.version, sys.platform)").encode())
        return digest.hexdigest()

    def marker(self) -> dict[str, object]:
        try:
            found = json.loads((self.venv / MARKER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def extras(self) -> set[str]:
        found = self.marker().get("extras")
        return {str(extra) for extra in found} if isinstance(found, list) else set()

    def is_current(self, extra: str) -> bool:
        return self.works() and extra in self.extras() and self.marker().get("key") == self.wanted()

    def works(self) -> bool:
        """Whether its Python starts and finds pip; a moved or upgraded base interpreter breaks both."""
        try:
            self._run("-c", "import pip")
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    def version_of(self, distribution: str) -> str | None:
        code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
        try:
            return self._run("-c", code, distribution).strip()
        except subprocess.CalledProcessError:
            return None

    def write_marker(self, extra: str) -> None:
        # `dev` brings every other extra but `gpu`.
        extras = self.extras() | ({"dev", "environments"} if extra == "dev" else {extra})
        body = {
            "key": self.wanted(),
            "extras": sorted(extras),
            "torch": self.version_of("torch"),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        (self.venv / MARKER).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=child_environment(),
        )
        return done.stdout


def install(installation: Installation, extra: str, talk: Talk) -> None:
    """Bring the virtual environment to what the checkout asks for; nothing is done when it is there."""
    with _alone(installation, talk):
        if installation.is_current(extra):
            torch = installation.marker().get("torch")
            talk.line(f"  already set up in {installation.venv} (torch {torch}); no network needed")
            return
        known = installation.works() and extra in installation.extras()
        _make_venv(installation, talk)
        try:
            _fill(installation, extra, talk)
        except PipFailed as failure:
            if not (known and failure.unreachable):
                raise explain(failure, "Installing") from failure
            talk.note(
                "pyproject.toml has changed since the last set-up, and the package index cannot be reached.\n"
                "Going on with what is installed; run this again with a network."
            )
            return
        installation.write_marker(extra)


def _make_venv(installation: Installation, talk: Talk) -> None:
    if installation.works():
        return
    place = installation.venv
    if place.exists() and any(place.iterdir()) and not (place / "pyvenv.cfg").exists():
        raise Stopped(
            f"{place} is no virtual environment and not empty: it stays. Give REBENCH_VENV another folder."
        )
    machine.require_venv_module()
    machine.require_space(installation.venv, CPU_DISK)
    with talk.step(f"virtual environment in {installation.venv}") as results:
        if installation.venv.exists():
            results.append("the old one no longer worked and was replaced")
            shutil.rmtree(installation.venv)
        command = [sys.executable, "-m", "venv", str(installation.venv)]
        if os.environ.get("REBENCH_SYSTEM_PACKAGES") == "1":
            command.append("--system-site-packages")
        subprocess.run(command, check=True, env=child_environment(), stdin=subprocess.DEVNULL)


def _fill(installation: Installation, extra: str, talk: Talk) -> None:
    installation.log.parent.mkdir(parents=True, exist_ok=True)
    installation.log.write_text("", encoding="utf-8")
    pip = Pip(installation.python, installation.log, talk)
    if installation.version_of("torch") is None:
        gpu = machine.has_nvidia_gpu()
        ask = ask_on_terminal if machine.has_terminal() else None
        machine.require_space(installation.venv, CUDA_DISK if gpu else CPU_DISK)
        with talk.step("torch: about 200 MB for a CPU build, a minute or two") as results:
            fetched = install_torch(pip, talk, gpu=gpu, ask=ask)
            results += [f"torch {installation.version_of('torch')}", fetched]
    with talk.step(f"rebench-workbench[{extra}] and what it needs: {_expected(extra)}") as results:
        results.append(pip.install("--editable", f"{installation.root}[{extra}]"))


def _expected(extra: str) -> str:
    return {
        "environments": "about 150 MB to fetch, a minute or two",
        "dev": "about 350 MB to fetch, two to four minutes",
    }.get(extra, "")


@contextmanager
def _alone(installation: Installation, talk: Talk) -> Iterator[None]:
    """Two set-ups of one checkout wait for each other; the lock goes with the process."""
    folder = installation.root / ".rebench"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "setup.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            talk.line("  another set-up of this checkout is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
