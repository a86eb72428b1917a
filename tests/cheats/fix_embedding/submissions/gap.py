"""A gap between tensors, to hide bytes in. Seen: safetensors' own threat list. Expected: invalid."""


def make(material):
    header, body = material.content()
    for name, entry in header.items():
        if name != "__metadata__":
            entry["data_offsets"] = [part + 64 for part in entry["data_offsets"]]
    material.write(header, bytes(64) + body)
