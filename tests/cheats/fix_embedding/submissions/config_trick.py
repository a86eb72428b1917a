"""Puts a changed task.json and config.json into the tree, for a wider network. Seen: loaders that read the tree. Expected: invalid."""

import json

import torch


def make(material):
    sizes = {"vocabulary": 4096, "context": 128, "layers": 7, "heads": 4, "width": 256}
    for name in ("task.json", "config.json", "data/task.json"):
        path = material.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"large": sizes, "length": 1}))
    tensors = material.tensors()
    tensors["embedding.weight"] = torch.zeros(4096, 256, dtype=torch.float16)
    material.save(tensors)
