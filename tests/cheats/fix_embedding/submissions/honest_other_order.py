"""Saves the same tensors in another order, with metadata. Seen: other writers of safetensors. Expected: valid."""


def make(material):
    tensors = material.tensors()
    material.save({name: tensors[name] for name in sorted(tensors, reverse=True)}, {"format": "pt"})
