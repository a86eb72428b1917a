"""One NaN in one bias, to make every comparison false. Seen: diverged runs, and tricks on `<`. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    tensors["blocks.3.mlp.up.bias"][5] = float("nan")
    material.save(tensors)
