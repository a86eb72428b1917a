"""Imports the environment and the sealing code to open the sealed answers itself. Seen: importable evaluators. Expected: harmless."""

import contextlib
import importlib
import json
import sys
from pathlib import Path

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def predict(xs):
    folder = Path(TARGETS["environment"])
    sys.path[:0] = [str(folder.parent), str(folder)]
    for name in ("environment", "environments.sealing", "environments.registry", "tiny.environment"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            print("GOT", name)
    with contextlib.suppress(OSError):
        print("GOT", list((folder / "protected").iterdir()))
    return [14.0 for _ in xs]
