"""Bytes after the last tensor, to carry something along. Seen: polyglot files. Expected: invalid."""


def make(material):
    material.target.write_bytes(material.damaged.read_bytes() + b"GOT MORE" * 100)
