"""Two tensors share their bytes, so the file is shorter than the model. Seen: safetensors advisories. Expected: invalid."""


def make(material):
    header, body = material.content()
    header["norm.bias"]["data_offsets"] = header["norm.weight"]["data_offsets"]
    material.write(header, body)
