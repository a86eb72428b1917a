"""A dtype of half a character and an escape sequence, which no report can carry. Seen: no. Expected: invalid."""


def make(material):
    header, body = material.content()
    header["norm.bias"]["dtype"] = "\ud800\x1b[2J"
    material.write(header, body)
