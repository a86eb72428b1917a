"""Lists the store for other sessions' records and snapshots. Seen: shared machines. Expected: harmless."""

import contextlib
import json
import os
from pathlib import Path

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def predict(xs):
    for place in (TARGETS["store"], TARGETS["other_session"], os.environ.get("REBENCH_HOME", "")):
        with contextlib.suppress(OSError):
            if place and os.listdir(place):
                print("GOT", place)
    with contextlib.suppress(OSError):
        print("GOT", open(TARGETS["other_session"] + "/events.jsonl").read())
    return [14.0 for _ in xs]
