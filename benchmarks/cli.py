"""How long the quick commands take beside `python -c 'import click'`: python benchmarks/cli.py [REPEATS].

Opens a session of the tests' tiny environment on a real host, then runs each command and the comparison in turn,
round after round, so that whatever else the machine does falls on both. Prints medians of wall time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "tests" / "workbench" / "cli" / "tiny_environment"
COMPARISON = "import click"
COMMANDS = (("status",), ("status", "--line"), ("time",), ("history",), ("note", "a note"), ("--help",))
TARGET = 2.0


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        variables = {
            **os.environ,
            "REBENCH_HOME": f"{folder}/home",
            "REBENCH_RUNTIME": f"{folder}/run",
            "REBENCH_ENVIRONMENTS": str(ENVIRONMENTS),
            "PYTHONPATH": str(ROOT),
        }
        session = _run(
            variables,
            "start",
            "tiny_sum",
            "--detach",
            "--yes",
            "--isolation",
            "none",
            "--workdir",
            f"{folder}/w",
        )
        try:
            return _compare(variables | {"REBENCH_SESSION": session.strip()}, repeats)
        finally:
            _run(variables, "end", session.strip(), "--why", "measured", "--yes")
            # The host writes until it is gone, and the folder goes after it.
            while Path(variables["REBENCH_RUNTIME"], session.strip(), "participant.sock").exists():
                time.sleep(0.05)


def _run(variables: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


def _compare(variables: dict[str, str], repeats: int) -> int:
    # As the installed script starts: one import, one call.
    start = "import sys; from workbench.cli import main; sys.argv[0] = 'rebench-workbench'; sys.exit(main())"
    contestants = {"import click": [sys.executable, "-c", COMPARISON]}
    contestants |= {" ".join(words): [sys.executable, "-c", start, *words] for words in COMMANDS}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, command in contestants.items():
            began = time.perf_counter()
            subprocess.run(command, env=variables, capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - began)
    base = statistics.median(seconds["import click"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(f"{name:16} {median * 1000:7.1f} ms   {median / base:4.2f}x   best {min(taken) * 1000:6.1f} ms")
    slow = [name for name in contestants if statistics.median(seconds[name]) > TARGET * base]
    print(f"target: under {TARGET:g}x; {'missed by ' + ', '.join(slow) if slow else 'met by all'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
