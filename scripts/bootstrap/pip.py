"""Runs pip in the virtual environment: its full output to a log, a few honest lines to the reader."""

import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.bootstrap.talk import Stopped, Talk, human_size

UNITS = {"bytes": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
FETCHED = re.compile(
    r"^\s*(?P<how>Downloading|Using cached)\s+(?P<file>\S+)\s+\((?P<size>[\d.]+)\s+(?P<unit>bytes|[kMG]?B)\)"
)
UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Max retries exceeded|No route to host"
    r"|Temporary failure in name resolution|Connection refused|Network is unreachable|SSLError"
)
WORTH_A_LINE = 10e6
SILENCE_S = 30.0
LAST_LINES = 15
INSTALL = ("install", "--no-user", "--no-input", "--progress-bar", "off", "--disable-pip-version-check")


class PipFailed(Exception):
    """pip ended with an error."""

    def __init__(self, lines: list[str], log: Path) -> None:
        super().__init__(f"pip failed; its output is in {log}")
        self.lines = lines
        self.log = log

    @property
    def unreachable(self) -> bool:
        return any(UNREACHABLE.search(line) for line in self.lines)


class Halted(Exception):
    """pip was stopped at a line it was not to go beyond."""

    def __init__(self, line: str) -> None:
        super().__init__(f"pip was stopped at: {line}")
        self.line = line


class Pip:
    """pip of one interpreter, with the user's own configuration and indexes."""

    def __init__(self, python: Path, log: Path, talk: Talk) -> None:
        self.python = python
        self._log = log
        self._talk = talk

    def install(self, *arguments: str, stop_at: Callable[[str], bool] | None = None) -> str:
        """Install and return a few words about what was fetched."""
        lines = self._run([*INSTALL, *arguments], stop_at)
        fetched = sum(fetched_bytes(line) for line in lines if "Downloading" in line)
        packages = next((line for line in lines if line.startswith("Successfully installed")), "")
        return f"{_count(len(packages.split()[2:]))}, {human_size(fetched)} fetched"

    def _run(self, arguments: list[str], stop_at: Callable[[str], bool] | None) -> list[str]:
        """Run pip to its end and return its lines; PipFailed when it fails, Halted at a line to `stop_at`."""
        command = [str(self.python), "-m", "pip", *arguments]
        lines: list[str] = []
        with (
            self._log.open("a", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=child_environment() | {"PYTHONUNBUFFERED": "1"},
            ) as process,
        ):
            log.write(f"\n$ {' '.join(command)}\n")
            try:
                for line in self._lines_of(process):
                    lines.append(line)
                    log.write(line + "\n")
                    if stop_at and stop_at(line):
                        raise Halted(line)
                    self._show(line)
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            raise PipFailed(lines, self._log)
        return lines

    def _lines_of(self, process: "subprocess.Popen[str]") -> Iterator[str]:
        """The lines as they come; long silences are remarked on."""
        assert process.stdout is not None
        stdout = process.stdout
        arriving: queue.Queue[str | None] = queue.Queue()

        def read() -> None:
            for line in stdout:
                arriving.put(line.rstrip("\n"))
            arriving.put(None)

        threading.Thread(target=read, daemon=True).start()
        began = time.monotonic()
        while True:
            try:
                line = arriving.get(timeout=SILENCE_S)
            except queue.Empty:
                self._talk.passing(f"still working, {time.monotonic() - began:.0f} s so far", keep=True)
                continue
            if line is None:
                return
            yield line

    def _show(self, line: str) -> None:
        if match := FETCHED.match(line):
            verb = "fetching" if match["how"] == "Downloading" else "cached"
            self._talk.passing(
                f"{verb} {fetched_name(line)}, {match['size']} {match['unit']}",
                keep=fetched_bytes(line) >= WORTH_A_LINE,
            )
        elif line.startswith("Installing collected packages"):
            self._talk.passing(f"installing {_count(line.count(',') + 1)}", keep=True)


def child_environment() -> dict[str, str]:
    """Our environment without what would lead another Python astray."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}


def explain(failure: PipFailed, doing: str) -> Stopped:
    """A failed pip in words."""
    if failure.unreachable:
        proxy = "set" if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy")) else "not set"
        return Stopped(
            f"{doing} failed: pip could not reach the package index. The first set-up needs a network, later ones do not.\n"
            f"HTTPS_PROXY is {proxy}. pip's own settings, an index or a proxy among them: python3 -m pip config list.\n"
            f"Everything pip said: {failure.log}"
        )
    shown = "\n".join(f"    {line}" for line in failure.lines[-LAST_LINES:])
    return Stopped(
        f"{doing} failed. The last lines of pip:\n{shown}\n"
        f"Everything it said: {failure.log}\n"
        "Running this again goes on where it stopped."
    )


def fetched_bytes(line: str) -> float:
    """The size that a line of pip gives for a file it fetches or finds in its cache; 0 for other lines."""
    match = FETCHED.match(line)
    return float(match["size"]) * UNITS[match["unit"]] if match else 0.0


def fetched_name(line: str) -> str:
    """The package whose file a line of pip says it fetches or finds in its cache; empty for other lines."""
    match = FETCHED.match(line)
    return match["file"].rsplit("/", 1)[-1].split("-")[0] if match else ""


def _count(packages: int) -> str:
    return "1 package" if packages == 1 else f"{packages} packages"
