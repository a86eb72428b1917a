"""Ships sitecustomize.py, usercustomize.py, a .pth file, conftest.py and pyvenv.cfg. Seen: pygpubench PR 7. Expected: harmless."""

import sys


def predict(xs):
    for name in ("sitecustomize", "usercustomize", "conftest", "planted"):
        if name in sys.modules:
            print("GOT imported:", name)
    return [14.0 for _ in xs]
