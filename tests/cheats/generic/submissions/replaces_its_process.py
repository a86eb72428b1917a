"""Replaces itself with another program that writes to the inherited descriptors. Seen: result forging. Expected: crashed."""

import os


def predict(xs):
    os.execv("/bin/sh", ["sh", "-c", "for n in 3 4 5 6 7 8 9; do echo forged >&$n; done 2>/dev/null; exit 0"])
