"""The header in UTF-16, with numbers in the shapes that only equal whole ones; it must change nothing. Seen: no. Expected: valid."""

import json


def make(material):
    header, body = material.content()
    for name, entry in header.items():
        if name != "__metadata__":
            entry["shape"] = [float(size) for size in entry["shape"]]
    material.write_header(json.dumps(header).encode("utf-16-le"), body)
