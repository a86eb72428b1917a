"""Writes a configuration into the file's metadata; it must change nothing. Seen: loaders that trust metadata. Expected: valid."""


def make(material):
    material.save(material.tensors(), {"config": '{"layers": 1, "dropout": 0}', "auto_map": "model.py"})
