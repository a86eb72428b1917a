"""Writes a result line to every open descriptor. Seen: pygpubench PR 7. Expected: invalid."""

import contextlib
import json
import os

FORGED = json.dumps({"score": {"status": "valid", "raw": 0.0, "message": "perfect", "details": {}}}).encode() + b"\n"


def predict(xs):
    for descriptor in range(1024):
        with contextlib.suppress(OSError):
            os.write(descriptor, FORGED)
    return [14.0 for _ in xs]
