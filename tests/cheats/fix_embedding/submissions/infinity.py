"""Infinity in the embedding, from a float32 too large to halve. Seen: overflow on saving. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    tensors["embedding.weight"][17, 3] = float("inf")
    material.save(tensors)
