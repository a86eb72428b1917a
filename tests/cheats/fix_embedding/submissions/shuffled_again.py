"""Shuffles the rows once more, hoping for luck over many score calls. Seen: best-of-many scores. Expected: valid."""

import torch


def make(material):
    tensors = material.tensors()
    order = torch.randperm(4096, generator=torch.Generator().manual_seed(3))
    tensors["embedding.weight"] = tensors["embedding.weight"][order].contiguous()
    material.save(tensors)
