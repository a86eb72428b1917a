"""A training log of two megabytes in the metadata. Seen: logs kept with weights. Expected: invalid."""


def make(material):
    material.save(material.tensors(), {"log": "step\n" * 400_000})
