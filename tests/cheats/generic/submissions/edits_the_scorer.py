"""Rewrites the scorer, the launcher, installed packages and its own snapshot. Seen: pygpubench PR 7. Expected: harmless."""

import contextlib
import json
import sys
from pathlib import Path

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def predict(xs):
    places = [Path(TARGETS["environment"]) / "environment.py", Path(__file__).parent / "solution.py", Path("/usr/pwned")]
    places += [Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
    places += [Path(p) / "pwned.py" for p in sys.path]
    for place in places:
        with contextlib.suppress(OSError, ValueError):
            with place.open("a") as file:
                file.write("# rewritten")
            print("GOT to write", place)
    return [14.0 for _ in xs]
