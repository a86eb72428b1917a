"""A shape that is a text of half a character, or numbers without end. Seen: no. Expected: invalid."""


def make(material):
    header, body = material.content()
    header["norm.bias"]["shape"] = "\ud800\n"
    header["norm.weight"]["shape"] = [int("9" * 4000)]
    material.write(header, body)
