"""Numbers whose products are too small for float32's normal range, which some processors take a hundred times as long for. Seen: no. Expected: valid."""

import torch

TINY = 2.0**-24


def make(material):
    chance = torch.Generator().manual_seed(0)
    tensors = material.tensors()
    for name, tensor in tensors.items():
        signs = (torch.randint(0, 2, tensor.shape, generator=chance) * 2 - 1).half()
        silent = name.startswith(("embedding", "positions")) or name.endswith("bias")
        tensor.copy_(signs * (0.0 if silent and "blocks.0.norm" not in name else TINY))
    material.save(tensors)
