"""The virtual environment of a checkout: filled by pip from a list of releases, and left alone once it is right."""

import fcntl
import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.bootstrap.talk import Stopped, say

TORCH = "torch==2.13.0"
LOCKED, OLDEST = "locked.txt", "oldest.txt"
NVIDIA_TRACES = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"), Path("/dev/nvidiactl"))
WORTH_SAYING = re.compile(r"Downloading \S+ \((\d\d+(\.\d)? M|[\d.]+ G)B\)|Installing collected|ERROR")
ASTRAY = {"PYTHONPATH", "PYTHONHOME"}
"""Variables that would lead the virtual environment's Python to another one's packages."""


class PipFailed(Exception):
    """pip ended with an error; the text is the last it said."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A checkout, its virtual environment, and the list of releases that goes into it."""

    root: Path
    venv: Path
    releases: str = LOCKED

    @classmethod
    def of(cls, root: Path, releases: str = LOCKED) -> "Installation":
        usual = root / (".venv" if releases == LOCKED else ".venv-oldest")
        return cls(root, Path(os.environ.get("REBENCH_VENV") or usual).expanduser().absolute(), releases)

    @property
    def log(self) -> Path:
        return self.root / ".rebench" / "setup.log"

    def program(self, name: str) -> str:
        return str(self.venv / "bin" / name)

    def environment(self) -> dict[str, str]:
        """Our variables with this virtual environment activated."""
        kept = {name: value for name, value in os.environ.items() if name not in ASTRAY}
        path = f"{self.venv / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
        return kept | {"VIRTUAL_ENV": str(self.venv), "PATH": path}

    def marker(self, extra: str) -> Path:
        return self.venv / f"rebench-{extra}"

    def wanted(self) -> str:
        """A digest of all that an installation depends on; another digest means install again."""
        read = [self.root / "pyproject.toml", self.root / "scripts" / self.releases]
        parts = [*(path.read_bytes() for path in read), str(self.root).encode(), sys.version.encode()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def is_current(self, extra: str) -> bool:
        marker = self.marker(extra)
        return self.works() and marker.is_file() and marker.read_text("utf-8") == self.wanted()

    def works(self) -> bool:
        """Whether its Python starts and finds pip; a moved or upgraded base interpreter breaks both."""
        return self._runs("-m", "pip", "--version")

    def has_torch(self) -> bool:
        return self._runs("-c", "import importlib.metadata as m; m.version('torch')")

    def _runs(self, *arguments: str) -> bool:
        try:
            command = [self.program("python"), *arguments]
            return subprocess.run(command, check=False, capture_output=True).returncode == 0
        except OSError:
            return False


def install(place: Installation, extra: str) -> None:
    """Bring the virtual environment to what the checkout asks for; nothing is done when it is there."""
    with _alone(place):
        if place.is_current(extra):
            say(f"  already set up in {place.venv}; no network needed")
            return
        served_before = place.works() and place.marker(extra).exists()
        _make_venv(place)
        try:
            _fill(place, extra)
        except PipFailed as failure:
            if not served_before:
                raise Stopped(_explained(failure, place)) from failure
            say(
                f"{failure}\n  note: what is asked for has changed, and pip could not fetch it: see {place.log}."
            )
            say("  Going on with what was installed before; the next time tries again.")
            return
        # The tools for testing come with all that a session needs.
        for served in {extra, "environments"}:
            place.marker(served).write_text(place.wanted(), "utf-8")


def torch_for_this_machine(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The arguments of pip for torch: without an NVIDIA GPU never a CUDA build, 3 GB to fetch and 6 on disk."""
    wanted = environ.get("REBENCH_TORCH") or TORCH
    if index := environ.get("REBENCH_TORCH_INDEX"):
        return ["--index-url", index, wanted]
    chosen = environ.get("REBENCH_TORCH") or environ.get("REBENCH_ALLOW_CUDA") == "1"
    if chosen or platform.system() != "Linux" or any(trace.exists() for trace in NVIDIA_TRACES):
        return [wanted]
    return [f"{TORCH}+cpu"]


def _make_venv(place: Installation) -> None:
    if place.works():
        return
    if place.venv.exists() and any(place.venv.iterdir()) and not (place.venv / "pyvenv.cfg").exists():
        raise Stopped(
            f"{place.venv} is no virtual environment and not empty: it stays. Give REBENCH_VENV another folder."
        )
    say(f"  a virtual environment in {place.venv}")
    options = ["--system-site-packages"] if os.environ.get("REBENCH_SYSTEM_PACKAGES") == "1" else []
    command = [sys.executable, "-m", "venv", "--clear", *options, str(place.venv)]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
        raise Stopped(
            f"{' '.join(command)} failed; why stands above.\n"
            "Debian and Ubuntu: apt install python3-venv. Elsewhere: name a complete Python by REBENCH_PYTHON."
        )


def _fill(place: Installation, extra: str) -> None:
    place.log.write_text("", "utf-8")
    if os.environ.get("REBENCH_SYSTEM_PACKAGES") != "1" or not place.has_torch():
        torch = torch_for_this_machine()
        say(f"  {torch[-1]}, about 200 MB for a CPU build (all that pip says: {place.log})")
        _pip(place, *torch)
    say(f"  rebench-workbench[{extra}] in the releases of scripts/{place.releases}, one to three minutes")
    _pip(place, "--editable", f"{place.root}[{extra}]")


def _pip(place: Installation, *arguments: str) -> None:
    """Run pip with the user's own settings; to the log goes all it says, to the reader what takes long or fails."""
    releases = str(place.root / "scripts" / place.releases)
    options = ("--no-user", "--no-input", "--progress-bar", "off", "--disable-pip-version-check")
    command = [
        place.program("python"),
        "-m",
        "pip",
        "install",
        *options,
        "--constraint",
        releases,
        *arguments,
    ]
    environment = place.environment() | {"PYTHONUNBUFFERED": "1"}
    told = []
    with (
        place.log.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        ) as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            told.append(line)
            if WORTH_SAYING.search(line):
                say(f"    {line.strip()[:140]}")
    if pip.returncode != 0:
        raise PipFailed("".join(told[-8:]).rstrip())


def _explained(failure: PipFailed, place: Installation) -> str:
    remedy = "Only the first set-up needs a network. pip's own settings: python3 -m pip config list."
    if "+cpu" in str(failure) and "from versions: none" not in str(failure):
        remedy = (
            "This machine has no NVIDIA GPU, and your package index has no CPU build of torch. Run this again with:\n"
            "  REBENCH_TORCH_INDEX=URL  take torch from that index (PyTorch's install page names its CPU index)\n"
            "  PIP_FIND_LINKS=FOLDER    look for the CPU wheel of torch in that folder as well\n"
            "  REBENCH_ALLOW_CUDA=1     take the CUDA build all the same: 3 GB to fetch, 6 GB on disk"
        )
    return f"{failure}\n\npip failed; all that it said is in {place.log}.\n{remedy}"


@contextmanager
def _alone(place: Installation) -> Iterator[None]:
    """Two set-ups of one checkout wait for each other; the lock goes with the process."""
    place.log.parent.mkdir(parents=True, exist_ok=True)
    with (place.log.parent / "setup.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  another set-up of this checkout is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
