"""Starts threads without end. Seen: contest judges. Expected: harmless or crashed or timeout."""

import threading
import time


def predict(xs):
    for _ in range(5000):
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            break
    else:
        print("GOT five thousand threads")
    return [14.0 for _ in xs]
