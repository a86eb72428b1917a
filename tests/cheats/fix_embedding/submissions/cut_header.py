"""The file stops inside its header. Seen: scoring during a save. Expected: invalid."""


def make(material):
    material.target.write_bytes(material.damaged.read_bytes()[:1000])
