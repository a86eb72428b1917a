"""Extra tensors beside the right ones: notes, or data for later. Seen: optimiser states left in. Expected: invalid."""

import torch


def make(material):
    material.save(material.tensors() | {"optimizer.step": torch.zeros(3, dtype=torch.float16)})
