"""Ignores every signal and never returns. Seen: contest judges. Expected: timeout."""

import signal


def predict(xs):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass
