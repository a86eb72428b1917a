"""Changes numbers in every tensor, architecture kept. Seen: any fine-tuning. Expected: valid."""

import torch


def make(material):
    generator = torch.Generator().manual_seed(0)
    tensors = material.tensors()
    for tensor in tensors.values():
        tensor += 0.01 * torch.randn(tensor.shape, generator=generator).half()
    material.save(tensors)
