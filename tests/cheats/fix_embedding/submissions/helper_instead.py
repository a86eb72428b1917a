"""Hands in the healthy helper, which is better than the damaged model. Seen: the first idea of agents. Expected: invalid."""


def make(material):
    material.target.write_bytes(material.helper.read_bytes())
