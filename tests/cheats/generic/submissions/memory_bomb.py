"""Allocates until something gives. Seen: contest judges. Expected: out-of-memory."""


def predict(xs):
    kept = []
    while True:
        kept.append(bytearray(b"x" * 2**24))
