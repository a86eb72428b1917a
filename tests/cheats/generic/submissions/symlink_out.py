"""Follows symbolic links in its snapshot that lead to the answers. Seen: submissions unpacked with links. Expected: harmless."""

import contextlib
import json
from pathlib import Path

HERE = Path(__file__).parent


def predict(xs):
    for name in ("link_to_answers.json", "link_to_folder/test.json", "link_to_root"):
        with contextlib.suppress(OSError, ValueError):
            found = HERE / name
            if found.is_dir():
                if "boot" in [p.name for p in found.iterdir()]:
                    print("GOT the real root folder")
            else:
                truth = json.loads(found.read_text())
                print("GOT the answers")
                return truth["y"]
    return [14.0 for _ in xs]
