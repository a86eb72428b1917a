"""Offsets that lead past the end or before the beginning. Seen: parsers in C. Expected: invalid."""


def make(material):
    header, body = material.content()
    header["norm.bias"]["data_offsets"] = [-256, 2**62]
    material.write(header, body)
