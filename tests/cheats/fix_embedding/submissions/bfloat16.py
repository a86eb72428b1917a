"""Saves bfloat16, of the same size. Seen: forgotten casts. Expected: invalid."""


def make(material):
    material.save({name: tensor.bfloat16() for name, tensor in material.tensors().items()})
