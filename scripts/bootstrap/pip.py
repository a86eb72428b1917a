"""Runs pip in the virtual environment: its full output to a log, a few honest lines to the reader."""

import os
import queue
import re
import subprocess
import threading
import time
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


class PipFailed(Exception):
    """pip ended with an error."""

    def __init__(self, lines: list[str], log: Path) -> None:
        super().__init__(f"pip failed; its output is in {log}")
        self.lines = lines
        self.log = log

    @property
    def unreachable(self) -> bool:
        return any(UNREACHABLE.search(line) for line in self.lines)


class Pip:
    """pip of one interpreter, with the user's own configuration and indexes."""

    def __init__(self, python: Path, log: Path, talk: Talk) -> None:
        self.python = python
        self._log = log
        self._talk = talk

    def install(self, *arguments: str) -> str:
        """Install and return a few words about what was fetched."""
        lines = self.run("install", "--no-user", *arguments)
        fetched = sum(
            _bytes(match) for match in map(FETCHED.match, lines) if match and match["how"] == "Downloading"
        )
        packages = next((line for line in lines if line.startswith("Successfully installed")), "")
        count = len(packages.split()[2:])
        return f"{count} packages, {human_size(fetched)} fetched"

    def run(self, *arguments: str) -> list[str]:
        """Run pip to its end, showing the larger downloads; raise PipFailed with all its lines."""
        command = [str(self.python), "-m", "pip", *arguments]
        if arguments[0] == "install":
            command += ["--progress-bar", "off", "--disable-pip-version-check", "--no-input"]
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"\n$ {' '.join(command)}\n")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=child_environment(),
            )
            try:
                lines = self._follow(process, log.write)
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if process.wait() != 0:
            raise PipFailed(lines, self._log)
        return lines

    def _follow(self, process: "subprocess.Popen[str]", write: object) -> list[str]:
        assert callable(write)
        assert process.stdout is not None
        arriving: queue.Queue[str | None] = queue.Queue()
        stdout = process.stdout

        def read() -> None:
            for line in stdout:
                arriving.put(line.rstrip("\n"))
            arriving.put(None)

        threading.Thread(target=read, daemon=True).start()
        lines: list[str] = []
        began = time.monotonic()
        while True:
            try:
                line = arriving.get(timeout=SILENCE_S)
            except queue.Empty:
                self._talk.passing(f"still working, {time.monotonic() - began:.0f} s so far", keep=True)
                continue
            if line is None:
                return lines
            lines.append(line)
            write(line + "\n")
            self._show(line)

    def _show(self, line: str) -> None:
        if match := FETCHED.match(line):
            name = match["file"].rsplit("/", 1)[-1].split("-")[0]
            verb = "fetching" if match["how"] == "Downloading" else "cached"
            self._talk.passing(
                f"{verb} {name}, {match['size']} {match['unit']}", keep=_bytes(match) >= WORTH_A_LINE
            )
        elif line.startswith("Installing collected packages"):
            self._talk.passing(f"installing {line.count(',') + 1} packages", keep=True)


def child_environment() -> dict[str, str]:
    """Our environment without what would lead another Python astray."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}


def explain(failure: PipFailed, doing: str) -> Stopped:
    """A failed pip in words."""
    shown = "\n".join(f"    {line}" for line in failure.lines[-LAST_LINES:])
    text = f"{doing} failed. The last lines of pip:\n{shown}\nEverything it said: {failure.log}\n"
    if failure.unreachable:
        proxy = "set" if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy")) else "not set"
        text += (
            "The package index could not be reached. The first set-up needs a network (later ones do not).\n"
            f"HTTPS_PROXY is {proxy}; pip's own settings, an index or a proxy among them: python3 -m pip config list."
        )
    else:
        text += "Running this again goes on where it stopped."
    return Stopped(text)


def _bytes(match: re.Match[str]) -> float:
    return float(match["size"]) * UNITS[match["unit"]]
