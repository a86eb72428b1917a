# tries: a function in place of a model; seen: listed by the task; verdict: invalid, not a torch.nn.Module
import torch


def get_trained_model():
    return lambda ids: torch.zeros(*ids.shape, 64)
