"""A program for tests that need a real terminal: shows a told session until it is left.

Arguments: what `t` runs (`raw-and-killed`, `quiet`, `forever`, `none`), and the path of a file that says it runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.workbench.tui.story import RULES, Story
from workbench.tui import run

_SCRIPTS = {
    "raw-and-killed": "stty raw -echo -isig; kill -9 $$",
    "quiet": "true",
    "forever": "stty raw -echo; while :; do sleep 0.2; done",
}


def main() -> int:
    wanted, mark = sys.argv[1], Path(sys.argv[2])

    def shell() -> object:
        process = subprocess.Popen(["bash", "-c", _SCRIPTS[wanted]])
        mark.write_text(str(process.pid))
        try:
            return process.wait()
        finally:
            process.kill()
            process.wait()

    story = Story().afternoon().machine(seconds=30)
    return run(story.source, rules=RULES, shell=shell if wanted != "none" else None)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = main()
    with contextlib.suppress(OSError):
        sys.stdout.write(f"left with {code}\n")
        sys.stdout.flush()
    os._exit(code)
