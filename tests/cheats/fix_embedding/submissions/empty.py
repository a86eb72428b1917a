"""An empty file. Seen: full disks. Expected: invalid."""


def make(material):
    material.target.touch()
