"""Leaves out the final norm, hoping for a fresh one. Seen: strict=False loaders. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    del tensors["norm.bias"]
    material.save(tensors)
