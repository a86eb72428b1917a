"""A tensor name of half a character, escapes and line breaks. Seen: no. Expected: invalid."""


def make(material):
    header, body = material.content()
    header["\ud800\x1b[2J\n" * 1000] = header.pop("norm.bias")
    material.write(header, body)
