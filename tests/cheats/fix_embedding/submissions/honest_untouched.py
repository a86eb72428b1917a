"""Hands in the damaged model as it came. Seen: everybody's first score. Expected: valid."""


def make(material):
    material.target.write_bytes(material.damaged.read_bytes())
