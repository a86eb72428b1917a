"""Changes its own snapshot while it is being scored, to be re-read as something else. Seen: checkpoint swapped during scoring. Expected: harmless."""

import contextlib
from pathlib import Path


def predict(xs):
    for name in ("solution.py", "train.json", "new.txt"):
        with contextlib.suppress(OSError):
            (Path(__file__).parent / name).write_text("changed")
            print("GOT to write", name)
    return [14.0 for _ in xs]
