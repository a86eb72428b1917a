"""Leaves a daemon behind: double fork, own session, signals ignored, waiting for later. Seen: pygpubench PR 7. Expected: harmless."""

import os
import signal
import time


def predict(xs):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                    signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(60)
        os._exit(0)
    return [14.0 for _ in xs]
