"""One name twice in the header: the checker sees the first, the loader the last. Seen: JSON parsers that differ. Expected: invalid."""

import json


def make(material):
    header, body = material.content()
    entry = json.dumps({"norm.bias": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})[1:-1]
    text = json.dumps(header)
    material.write_header(("{" + entry + "," + text[1:]).encode(), body)
