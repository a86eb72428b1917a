"""An output matrix of its own, which would silently be dropped. Seen: many paper-era submissions. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    material.save(tensors | {"head.weight": tensors["embedding.weight"].clone()})
