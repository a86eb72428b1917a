"""Finite numbers so large that the logits are not. Seen: NaN losses logged as zero. Expected: invalid or valid."""


def make(material):
    tensors = material.tensors()
    for name, tensor in tensors.items():
        if name.endswith("weight"):
            tensor.fill_(65504.0)
            tensor[::2] *= -1
    material.save(tensors)
