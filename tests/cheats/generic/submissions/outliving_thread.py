"""Leaves a thread behind that goes on after the answer. Seen: work on another stream after return. Expected: harmless."""

import threading


def forever():
    while True:
        pass


def predict(xs):
    threading.Thread(target=forever).start()
    return [14.0 for _ in xs]
