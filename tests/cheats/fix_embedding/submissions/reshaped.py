"""The embedding transposed: as many numbers, another shape. Seen: other libraries' layouts. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    tensors["embedding.weight"] = tensors["embedding.weight"].T.contiguous()
    material.save(tensors)
