"""The file stops in the middle, as while it is being saved. Seen: scoring during a save. Expected: invalid."""


def make(material):
    content = material.damaged.read_bytes()
    material.target.write_bytes(content[: len(content) // 2])
