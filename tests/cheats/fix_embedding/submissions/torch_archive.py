"""An archive of torch.save with the right tensors, renamed. Seen: habit, and pickles inside. Expected: invalid."""

import torch


def make(material):
    torch.save(material.tensors(), material.target)
