"""An eighth layer in the file, for a deeper network. Seen: loaders that count layers from names. Expected: invalid."""


def make(material):
    tensors = material.tensors()
    last = {name: tensor.clone() for name, tensor in tensors.items() if name.startswith("blocks.6.")}
    material.save(tensors | {name.replace("blocks.6.", "blocks.7."): tensor for name, tensor in last.items()})
