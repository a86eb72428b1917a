"""A header nested a hundred thousand deep, to exhaust the parser's stack. Seen: JSON bombs. Expected: invalid."""


def make(material):
    material.write_header(b"[" * 100_000 + b"]" * 100_000, b"")
