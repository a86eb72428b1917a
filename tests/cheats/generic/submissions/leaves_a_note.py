"""Stores what it sees for its next call: files, shared memory, environment. Seen: outputs cached by content. Expected: harmless."""

import contextlib
import os
from pathlib import Path

PLACES = ["/tmp/memo", "/dev/shm/memo", "/var/tmp/memo", os.path.expanduser("~/memo"), str(Path(__file__).parent / "memo")]


def predict(xs):
    for place in PLACES:
        with contextlib.suppress(OSError):
            if Path(place).exists():
                print("GOT a note from an earlier call:", place)
            Path(place).write_text(str(xs))
    return [14.0 for _ in xs]
