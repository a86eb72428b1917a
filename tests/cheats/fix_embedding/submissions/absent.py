"""No file at all. Seen: the wrong folder. Expected: invalid."""


def make(material):
    pass
